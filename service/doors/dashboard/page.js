const EVERY_MS = 2000;

// Pictures of the next state are loaded before they are shown, so that nothing flickers.
async function loaded(next) {
  const images = [...next.images].map((image) => {
    const early = new Image();
    early.src = image.getAttribute("src");
    return early.decode().catch(() => {});
  });
  await Promise.all(images);
}

function show(next) {
  document.title = next.title;
  for (const part of next.querySelectorAll("[data-part]")) {
    const shown = document.querySelector(`[data-part="${part.dataset.part}"]`);
    for (const [at, detail] of [...part.querySelectorAll("details")].entries()) {
      detail.open = shown.querySelectorAll("details")[at]?.open ?? detail.open;
    }
    if (shown.innerHTML !== part.innerHTML) shown.replaceChildren(...part.childNodes);
  }
}

async function refresh() {
  let live = true;
  try {
    const answer = await fetch(location.href, { cache: "no-store" });
    if (answer.ok) {
      const next = new DOMParser().parseFromString(await answer.text(), "text/html");
      await loaded(next);
      show(next);
      live = "live" in next.body.dataset;
    }
  } catch {
    // The service may be started again at this moment; the next time it may answer.
  }
  if (live) setTimeout(refresh, EVERY_MS);
}

if ("live" in document.body.dataset) setTimeout(refresh, EVERY_MS);

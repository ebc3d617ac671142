"""How projects are built and run, as this service knows it."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from service.doors.api import render, views
from service.doors.api.problems import responses
from service.doors.api.sent import RecipeName
from service.doors.parameters import FlowOf

router = APIRouter()


@router.get(
    "/recipes",
    operation_id="listRecipes",
    summary="The recipes that a request may name as its project, by name",
    response_model=views.RecipeList,
    responses=responses(),
)
def list_recipes(flow: FlowOf) -> Any:
    return {"items": [render.recipe(each) for each in flow.recipes()]}


@router.get(
    "/recipes/{name}",
    operation_id="getRecipe",
    summary="One recipe",
    response_model=views.RecipeView,
    responses=responses(404, 422),
)
def get_recipe(name: RecipeName, flow: FlowOf) -> Any:
    return render.recipe(flow.recipe(name))

from tinyserve.entrypoints.main import main

main()

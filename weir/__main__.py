from weir.cli import main

main()

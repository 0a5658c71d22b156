"""What mnemoscope plugs into, one file each. Importing this package imports none of them."""

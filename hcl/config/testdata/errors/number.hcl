# Text that would exhaust the parser.
locals {
  huge = 1e999999999 # error: Number out of range
}

# A syntax error leaves the mistakes above and below it in sight, and reports nothing as missing.
variable "size" {
  type = nmber # error: Invalid type specification
}
experiment "syntax" {
  load "folder" "photos" {
    path    = "photos"
    workers = 0 # error: Value out of range
  }
  prepare "scale" "small" {
    size = = 4 # error: Invalid expression
  }
  batch {
    size = 0 # error: Value out of range
  }
}

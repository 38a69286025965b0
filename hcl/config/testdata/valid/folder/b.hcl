# The second file of the folder: its experiment comes second, and it uses what the first one declares.
experiment "second" {
  load "folder" "items" { path = "${var.data}/items" }
  batch { size = local.size }
  train "step" "step" {}
}

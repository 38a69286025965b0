variable "data" {}

locals { size = local.from_c * 2 }

experiment "first" {
  pool "all" {
    load "folder" "items" { path = var.data }
    batch { size = local.size }
  }
  checkpoint "ready" {}
  transfer {}
  train "step" "step" {}
  bisect { rounds = 12 }
}

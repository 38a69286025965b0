# Stages on the device, and caches beside them.
variable "where" { default = true }

experiment "device" {
  load "folder" "photos" { path = "photos" }
  pool "workers" {
    prepare "decode" "decode" {}
    prepare "float" "float" { device = !var.where }
  }
  batch { size = 4 }
  checkpoint "host" { store = "pinned" }
  transfer { convert = "device" }
  augment "mirror" "mirror" { device = var.where }
  augment "mirror" "again" { device = augment.mirror.device }
  checkpoint "ready" {
    store = "device"
    limit = "1GiB"
  }
  train "step" "step" {}
}

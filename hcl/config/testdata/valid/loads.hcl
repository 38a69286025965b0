# Several load blocks, whose items come mixed. The same workers read for all of them.
experiment "loads" {
  load "folder" "photos" {
    path    = "photos"
    workers = 3
    weight  = 7
  }
  load "folder" "drawings" { path = "drawings" }
  load "folder" "maps" {
    path     = "maps"
    weight   = load.photos.weight / 2
    on_error = "skip"
  }
  checkpoint "raw" {}
  prepare "scale" "small" { size = load.maps.workers }
  batch { size = 4 }
  train "step" "step" {}
}

# Mistakes in checkpoints, pools, bisect and expect.
experiment "checkpoints" {
  checkpoint "early" {} # error: Checkpoint before the data
  load "folder" "photos" { path = "photos" }
  checkpoint "raw" {}
  checkpoint "same" {} # error: Second checkpoint at a boundary
  prepare "decode" "decode" {}
  checkpoint "raw" { # error: Duplicate name
    store = "disc"   # error: Unknown value
  }
  augment "flip" "flip" {}
  checkpoint "disk" {
    path     = "cache" # error: path without a disk
    compress = "zstd"  # error: Nothing to compress
    mode     = "keep"  # error: Not kept in memory
    limit    = 0       # error: Value out of range
  }
  batch { size = 4 }
  checkpoint "pinned" {
    store = "pinned"
    limit = "big" # error: Malformed size
  }
  transfer {}
  checkpoint "device" {
    store    = "device"
    compress = true # error: Unknown value
    limit    = true # error: Wrong type
  }
  train "step" "step" {}
  checkpoint "late" {} # error: Checkpoint after the training step
  checkpoint {}        # error: Wrong labels # error: Checkpoint after the training step
}

experiment "kept" {
  load "folder" "photos" { path = "photos" }
  checkpoint "raw" {
    store    = "disk"
    path     = "checkpoints.hcl" # error: Not a folder
    compress = "zstd"            # error: Nothing to compress
  }
  prepare "decode" "decode" {}
  checkpoint "far" {
    store = "disk"
    path  = "s3://bucket/cache" # error: Not a local folder
  }
  augment "flip" "flip" {}
  checkpoint "flipped" {
    store    = "disk"
    path     = "cache"
    compress = "zstd"
    limit    = "2GiB"
    mode     = "keep" # warning: Frozen augmentation
  }
  batch { size = 4 }
  checkpoint "batches" {
    store = "disk" # error: Misplaced store
    mode  = "keep"
  }
  train "step" "step" {}
}

experiment "pools" {
  pool "loader" {
    workers  = -1     # error: Value out of range
    on_error = "skip" # error: Misplaced attribute
    load "folder" "photos" {
      path    = "photos"
      workers = 2 # error: Misplaced attribute
    }
    prepare "decode" "decode" {
      prefetch = 2 # error: Misplaced attribute
    }
    pool "inner" { # error: Misplaced block
      augment "flip" "flip" {}
    }
    batch {
      size    = 4
      workers = 2 # error: Misplaced attribute
    }
    transfer {} # error: Misplaced block
  }
  pool "none" {} # error: Empty pool
  pool {         # error: Wrong labels
    train "step" "step" {} # error: Misplaced block
  }
}

experiment "search" {
  load "folder" "photos" { path = "photos" }
  prepare "decode" "decode" {}
  batch { size = 4 }
  train "step" "step" {}
  bisect {
    strategy      = "binary" # error: Unknown value
    warmup        = -1       # error: Value out of range
    steps         = 0        # error: Value out of range
    rounds        = 3        # error: Value out of range
    confidence    = 0.5      # error: Value out of range
    min_effect    = 1        # error: Value out of range
    cache_batches = "all"    # error: Wrong type
    budget        = "0s"     # error: Value out of range
    cold          = 1        # error: Wrong type
    control       = "burn"   # error: Wrong type
    probes        = 3        # error: Unknown attribute
  }
  expect {
    steps_per_second = 0                # error: Value out of range
    max_starvation   = 1.5              # error: Value out of range
    bottleneck       = "prepare.decod" # error: Unknown stage
  }
}

experiment "few" {
  load "folder" "photos" { path = "photos" }
  batch { size = 4 }
  train "step" "step" {}
  bisect {
    rounds     = 5 # warning: Few rounds
    confidence = 1 # error: Value out of range
  }
}

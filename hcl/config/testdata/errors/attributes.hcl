# Mistakes in the attributes of operators. What is expected stands beside each mistake.
experiment "names" {
  sede = 3 # error: Unknown attribute

  load "folder" "photos" {
    path    = "photos"
    shufle  = true # error: Unknown attribute
    augment = 1    # error: Unknown attribute
    size { # error: Unknown block
    }
  }
  prepare "scale" "small" { # error: Missing attribute
    mean = [0.5, 0.5]
  }
  batch { # error: Missing attribute
    siz = 4 # error: Unknown attribute
  }
  train "step" "step" {
    workers   = 2      # error: Misplaced attribute
    prefetch  = 2      # error: Misplaced attribute
    on_error  = "skip" # error: Misplaced attribute
    max_skips = 2      # error: Misplaced attribute
  }
}

experiment "values" {
  seed        = -1      # error: Value out of range
  description = ["one"] # error: Wrong type

  load "folder" "photos" {
    path     = ""       # error: Empty path
    extra    = "photos" # error: Wrong type
    shuffle  = "maybe"  # error: Wrong type
    buffer   = "1XB"    # error: Malformed size
    workers  = "many"   # error: Wrong type
    prefetch = 0        # error: Value out of range
    on_error = "ignore" # error: Unknown value
  }
  prepare "scale" "half" {
    size  = 2.5                  # error: Not a whole number
    mean  = [0.5, 1.5]           # error: Value out of range
    names = ["r", "gg"]          # error: Unknown value
    seed  = 18446744073709551616 # error: Value out of range
  }
  prepare "scale" "wide" {
    size      = 5000   # error: Value out of range
    mean      = [null] # error: Null value
    names     = "r"    # error: Wrong type
    workers   = 0      # error: Value out of range
    max_skips = 3      # error: max_skips without skipping
  }
  prepare "scale" "huge" {
    size     = 1e300    # error: Value out of range
    mean     = "middle" # error: Wrong type
    seed     = 0.5      # error: Not a whole number
    prefetch = 1.5      # error: Not a whole number
  }
  prepare "wait" "plain" {
    time   = 10      # error: Duration without a unit
    jitter = 1.5     # error: Value out of range
    mode   = "sleap" # error: Unknown value
  }
  prepare "wait" "text" {
    time   = "10 parsecs" # error: Malformed duration
    jitter = "10"         # error: Value out of range
    mode   = null         # error: Null value
  }
  prepare "wait" "back" {
    time   = "-10ms" # error: Value out of range
    jitter = "-1ms"  # error: Value out of range
    mode   = sleep   # error: Unknown name
  }
  prepare "wait" "long" {
    time   = "2h"    # error: Value out of range
    jitter = ["1ms"] # error: Wrong type
  }
  augment "flip" "flip" {
    p         = 1 / 0 # error: Infinite number
    on_error  = "skip"
    max_skips = -1 # error: Value out of range
  }
  augment "flip" "zero" {
    p = 0 / 0 # error: Operation failed
  }
  batch {
    size      = 0     # error: Value out of range
    drop_last = "no!" # error: Wrong type
    on_error  = "skip" # error: Misplaced attribute
  }
  transfer {
    pinned  = 1 # error: Wrong type
    workers = 2 # error: Misplaced attribute
  }
  train "step" "step" {
    device = "tpu" # error: Unknown value
    rate   = 0     # error: Value out of range
  }
}

experiment "sizes" {
  load "folder" "photos" {
    path   = "photos"
    buffer = "512B" # error: Value out of range
  }
  prepare "scale" "big" {
    size = "big" # error: Wrong type
    mean = -1    # error: Value out of range
  }
  batch { size = 99999999 } # error: Value out of range
  train "step" "step" {}
}

experiment "bytes" {
  load "folder" "photos" {
    path   = "photos"
    buffer = -5 # error: Value out of range
  }
  batch { size = 4 }
  train "step" "step" {}
}

experiment "fractions" {
  load "folder" "photos" {
    path   = ["photos"] # error: Wrong type
    buffer = 2048.5     # error: Not a whole number
  }
  batch { size = 4 }
  train "step" "step" {}
}

experiment "folders" {
  load "folder" "photos" {
    path = "missing" # error: Folder not found
  }
  batch { size = 4 }
  train "step" "step" {}
}

experiment "urls" {
  load "folder" "photos" {
    path  = "gs://bucket/photos"           # error: Unknown kind of URL
    extra = ["s3://bucket/a", "ftp://b/a"] # error: Unknown kind of URL
  }
  batch { size = 4 }
  train "step" "step" {}
}

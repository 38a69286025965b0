# Trains a small classifier on 6,000 images of clothes (Fashion-MNIST, in data/).
#
#   pipectl run examples/fashion --epochs 3     trains
#   pipectl run examples/fashion                asks what the training waits for

experiment "fashion" {
  description = "Ten kinds of clothes, 28×28 pixels"
  seed        = 1

  load "idx" "train" {
    images  = "data/train-images-idx3-ubyte.gz"
    labels  = "data/train-labels-idx1-ubyte.gz"
    shuffle = true
  }
  augment "random_flip" "flip" {}
  prepare "normalize" "normalize" {
    mean = [0.286]
    std  = [0.353]
  }
  batch { size = 64 }

  train "cnn" "step" {
    width         = 8
    depth         = 2
    learning_rate = 0.02
  }
}

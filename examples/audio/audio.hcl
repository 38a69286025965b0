# Footsteps and water become spectrograms, by pipectl's own operators, for a network that takes 2 ms a step.
#
#   pipectl run examples/audio -e audio

experiment "audio" {
  description = "Log-mel spectrograms of footsteps and water"
  seed        = 42

  load "audio_folder" "sounds" {
    path    = "sounds"
    shuffle = true
  }
  prepare "decode_audio" "decode" {
    sample_rate = 22050
    channels    = 1
  }
  prepare "resample" "resample" {
    orig_freq = 22050
    new_freq  = 16000
  }
  prepare "pad_or_trim" "pad" { length = 16000 } # a second
  prepare "mel_spectrogram" "spectrogram" {
    hop_length = 160
    n_mels     = 64
  }
  prepare "amplitude_to_db" "decibels" { top_db = 80 }
  augment "time_mask" "time_mask" { time_mask_param = 20 }
  augment "frequency_mask" "frequency_mask" { freq_mask_param = 12 }

  batch { size = 10 }

  train "emulated" "step" { time = "2ms" }
}

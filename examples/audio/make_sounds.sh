#!/bin/sh
# Makes sounds/ of Debian 12's minetest-data. Needs apt-get, dpkg, ffmpeg 5.1 and flac 1.4.2.
set -e
cd "$(dirname "$0")"
package=$(mktemp -d)
trap 'rm -r "$package"' EXIT
(cd "$package" && apt-get download minetest-data && dpkg -x minetest-data_*.deb .)
mods=$package/usr/share/games/minetest/games/minetest_game/mods

# make CLASS NAME OGG: the first second, at 22,050 Hz.
make() {
	mkdir -p "sounds/$1"
	ffmpeg -v error -i "$mods/$3" -t 1 -ac 1 -ar 22050 -map_metadata -1 -bitexact -f wav - |
		flac -s -f -8 --no-padding --no-seektable --ignore-chunk-sizes -o "sounds/$1/$2.flac" -
}

for i in 1 2 3; do
	make gravel "dug$i" "default/sounds/default_gravel_dug.$i.ogg"
	make metal "step$i" "default/sounds/default_metal_footstep.$i.ogg"
	make sand "step$i" "default/sounds/default_sand_footstep.$i.ogg"
done
for i in 1 2; do make gravel "dig$i" "default/sounds/default_gravel_dig.$i.ogg"; done
for i in 1 2 3 4 5; do make snow "step$i" "default/sounds/default_snow_footstep.$i.ogg"; done
for i in 1 2 3 4; do make water "flow$i" "env_sounds/sounds/env_sounds_water.$i.ogg"; done

#!/bin/sh
# Makes digits/ of Debian 12's packages. Needs apt-get, dpkg and flac 1.4.2.
set -e
cd "$(dirname "$0")"
packages=$(mktemp -d)
trap 'rm -r "$packages"' EXIT
(cd "$packages" && apt-get download asterisk-core-sounds-it-wav asterisk-core-sounds-ru-wav && for deb in *.deb; do dpkg -x "$deb" .; done)
sounds=$packages/usr/share/asterisk/sounds
for digit in 0 1 2 3 4 5 6 7 8 9; do
	mkdir -p "digits/$digit"
	flac -s -f -8 --no-padding --no-seektable -o "digits/$digit/italian.flac" "$sounds/it_IT_m_Carlo/digits/$digit.wav"
	flac -s -f -8 --no-padding --no-seektable -o "digits/$digit/russian.flac" "$sounds/ru_RU_f_IvrvoiceRU/digits/$digit.wav"
done

#!/bin/sh
# $1 is "remove" for Debian and 0 for RPM when the package goes for good, else it is an upgrade.
set -e
if [ -d /run/systemd/system ]; then
	case "$1" in
	remove | 0) systemctl disable --now 'trunkline*.socket' trunkline.service || true ;;
	esac
fi

# The machine: its command line, its memory, its drivers, and the facts that later programs read.
# The parts share their variables.
# shellcheck shell=dash disable=SC2034,SC2154

folder=/run/flasher
facts=/run/flasher/boot

read_command_line() { read -r command_line </proc/cmdline; }

# Whether the command line has `NAME=value`; $value becomes that of the last one. An empty
# value counts as none.
param() { # NAME
  value=
  for word in $command_line; do
    case $word in "$1="*) value=${word#*=} ;; esac
  done
  [ -n "$value" ]
}

memory_of() { # FIELD of /proc/meminfo, in MiB
  while read -r field kib _; do
    [ "$field" = "$1:" ] && echo $((kib / 1024)) && return
  done </proc/meminfo
}

mib() { echo $((($1 + 1048575) / 1048576)); }
size_of() { stat -c %s "$1" 2>/dev/null || echo 0; }
mac_of() { echo "$1" | tr 'A-F-' 'a-f:'; }
base_of() { case $1 in *://*) echo "${1%/}" ;; *) echo "http://${1%/}" ;; esac; }

# Addresses of a server, the most likely first: a bare name may listen on port 80 or on ours, 8080;
# the wizard tries them in the same order.
bases_of() { # ADDRESS
  base_of "$1"
  case $1 in *://*) return ;; esac
  host=${1%%/*}
  path=${1#"$host"}
  case ${host##*]} in *:*) ;; *) echo "http://$host:8080${path%/}" ;; esac
}

# Addresses of the other servers of the site, if the command line names any.
other_bases() {
  param flasher.servers || return 0
  for other in $(echo "$value" | tr , ' '); do base_of "$other"; done
}

note() { echo "$1=$2" >>"$facts"; } # KEY VALUE

# kmod reads this from the command line; busybox's modprobe reads it from files only.
block_modules() {
  param modprobe.blacklist || return 0
  mkdir -p /etc/modprobe.d
  for module in $(echo "$value" | tr , ' '); do echo "blacklist $module"; done \
    >/etc/modprobe.d/command-line.conf
}

load_drivers() { modprobe -aq "$@" 2>/dev/null; }

# Only classes of devices that lead to the root file system; udev loads the rest later.
plug_in() {
  if param flasher.media || param flasher.slot; then
    classes='bc01|bc0Csc03|bc08sc05|virtio:|usb:|scsi:|vmbus:|xen:|of:|acpi:|mmc:|platform:|sd:'
  else
    classes='bc02|bc0Csc03|virtio:|usb:|vmbus:|xen:|of:|acpi:|platform:|mdio:'
  fi
  cat /sys/bus/*/devices/*/modalias 2>/dev/null |
    grep -E "$classes" | sort -u | xargs modprobe -aqb 2>/dev/null
}

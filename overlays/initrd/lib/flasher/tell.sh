# Messages on all consoles, and how a boot ends that has failed.
# The parts share their variables.
# shellcheck shell=dash disable=SC2034,SC2154

# Lines that the kernel does not use as consoles: the screen, when only serial ones are named, and serial
# ports that exist: the kernel uses one serial console for each driver, and the cable may be in
# another.
find_lines() {
  lines=
  read -r consoles </sys/class/tty/console/active
  case " $consoles" in *' tty'[0-9]*) ;; *) [ ! -c /dev/tty1 ] || lines=tty1 ;; esac
  for type in /sys/class/tty/ttyS*/type; do
    read -r kind <"$type" 2>/dev/null || continue
    [ "$kind" != 0 ] || continue
    uart=${type%/type}
    uart=${uart##*/}
    case " $consoles " in *" $uart "*) continue ;; esac
    stty -F "/dev/$uart" 115200 cs8 clocal -crtscts 2>/dev/null
    lines="$lines $uart"
  done
}

# The kernel's log reaches all its consoles, and later the journal. It refuses records of 1 KiB or more, and
# file names can hold anything.
tell() { # LEVEL TEXT
  text=$2
  case $text in *[!\ -~]*) text=$(printf %s "$text" | tr -c ' -~' '?') ;; esac
  while [ ${#text} -gt 900 ]; do
    piece=$(printf %.900s "$text")
    tell_line "$1" "$piece"
    text=${text#"$piece"}
  done
  tell_line "$1" "$text"
}

tell_line() { # LEVEL TEXT
  echo "<$1>flasher: $2" >/dev/kmsg
  for line in $lines; do
    read -r up _ </proc/uptime
    printf '[%9s] flasher: %s\n' "$up" "$2" >"/dev/$line"
  done
}

say() { tell 5 "$*"; }

# Makes foreign text safe for a console: one printable line of limited length.
tame() { tail -n 1 | tr -cd ' -~' | cut -c 1-200; }

# Shows the reason and how to fix it, reports to the server, and repeats both until the machine restarts.
# `flasher.onfail=` is `reboot`, `shell` or `halt`.
fail() { # REASON HINT
  tell 2 "FAILED: $1"
  tell 2 "TO DO: $2"
  report_failure "$1"
  param flasher.onfail || value=reboot
  case $value in
    shell) open_shells ;;
    halt) poweroff -f ;;
  esac
  for left in 300 240 180 120 60; do
    [ $left = 300 ] || { tell 2 "FAILED: $1"; tell 2 "TO DO: $2"; }
    tell 2 "this machine starts again in $left seconds"
    sleep 60
  done
  reboot -f
}

# One shell on the screen and one on every serial line, for as long as the machine runs.
open_shells() {
  load_drivers usbhid hid-generic
  tell 2 'a shell is on the screen and on the serial lines: "reboot -f" starts this machine again'
  opened=
  for line in tty1 $consoles $lines; do
    case " tty0 $opened " in *" $line "*) continue ;; esac
    [ -c "/dev/$line" ] || continue
    opened="$opened $line"
    while :; do
      setsid -c sh <"/dev/$line" >"/dev/$line" 2>&1
      sleep 1
    done &
  done
  wait
}

# Best effort: the person at the console has seen the reason already.
report_failure() { # REASON
  param flasher.server && servers=$(bases_of "$value") || return 0
  servers="$servers $(other_bases)"
  param flasher.mac && mac=$(mac_of "$value") || return 0
  [ -n "$interface" ] || return 0
  reason=$(echo "boot system: $1" | tame | sed 's/[\\"]/\\&/g')
  param flasher.token && set -- --header "Authorization: Bearer $value" || set --
  for pause in 0 2 5; do
    sleep $pause
    post_failure "$@" && return 0
  done
  # The current address may not lead to the server.
  for card in $(list_candidates); do
    [ "$card" != "$interface" ] && has_link "$card" && ask_for_address "$card" && post_failure "$@" && return 0
  done
}

post_failure() { # OPTION... of wget
  for server in $servers; do
    wget -q -T 10 -O /dev/null --header 'Content-Type: application/json' "$@" \
      --post-data "{\"status\":\"failed\",\"reason\":\"$reason\"}" \
      "$server/pxe/$mac/status" 2>/dev/null && return 0
  done
  return 1
}

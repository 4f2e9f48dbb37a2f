# What is said, and how a boot ends that cannot go on.

# Serial ports that exist and are no console: the kernel takes one serial console for each driver,
# and the cable may be in another.
find_uarts() {
  uarts=
  read -r consoles </sys/class/tty/console/active
  for type in /sys/class/tty/ttyS*/type; do
    read -r kind <"$type" 2>/dev/null || continue
    [ "$kind" != 0 ] || continue
    uart=${type%/type}
    uart=${uart##*/}
    case " $consoles " in *" $uart "*) continue ;; esac
    stty -F "/dev/$uart" 115200 cs8 clocal -crtscts 2>/dev/null
    uarts="$uarts $uart"
  done
}

# The kernel's log reaches all its consoles, and later the journal.
tell() { # LEVEL TEXT
  echo "<$1>flasher: $2" >/dev/kmsg
  for uart in $uarts; do
    read -r up _ </proc/uptime
    printf '[%9s] flasher: %s\n' "$up" "$2" >"/dev/$uart"
  done
}

say() { tell 5 "$*"; }

# Text of others, made fit for a console and a message: one line, printable, not long.
tame() { tail -n 1 | tr -cd ' -~' | cut -c 1-200; }

# Says why and what to do, tells the server, and says it again until the machine starts anew.
# `flasher.onfail=` is `reboot`, `shell` or `halt`.
fail() { # REASON WAY-OUT
  tell 2 "FAILED: $1"
  tell 2 "TO DO: $2"
  report_failure "$1"
  param flasher.onfail || value=reboot
  case $value in
    shell) while :; do setsid cttyhack sh </dev/console >/dev/console 2>&1; done ;;
    halt) poweroff -f ;;
  esac
  for left in 300 240 180 120 60; do
    [ $left = 300 ] || { tell 2 "FAILED: $1"; tell 2 "TO DO: $2"; }
    tell 2 "this machine starts again in $left seconds"
    sleep 60
  done
  reboot -f
}

# Best effort: the person at the console has been told already.
report_failure() { # REASON
  param flasher.server && server=$(base_of "$value") || return 0
  param flasher.mac && mac=$(mac_of "$value") || return 0
  [ -n "$address" ] || return 0
  reason=$(echo "boot system: $1" | tame | sed 's/[\\"]/\\&/g')
  param flasher.token && set -- --header "Authorization: Bearer $value" || set --
  for pause in 0 2 5; do
    sleep $pause
    wget -q -T 10 -O /dev/null --header 'Content-Type: application/json' "$@" \
      --post-data "{\"status\":\"failed\",\"reason\":\"$reason\"}" \
      "$server/pxe/$mac/status" 2>/dev/null && return 0
  done
}

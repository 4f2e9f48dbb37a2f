# The login screen: version, line, addresses, and the generated password until it is changed.
# shellcheck shell=dash disable=SC2154

# agetty replaces \4 with the address, and draws the screen again when it changes.
write_issue() {
  port=$(setting FLASHER_SERVER_PORT)
  [ "$line" != earlier ] || { earlier_port=$(setting FLASHER_WEB_PORT) && port=${earlier_port:-$port}; }
  {
    echo "Flasher server $(sed -n 's/^IMAGE_VERSION=//p' /usr/lib/os-release | tr -d \"), $line line"
    echo
    # echo of dash would take \4 for a character.
    printf '%s\n' "  Web interface  http://\\4:${port:-8080}"
    [ "$line" = earlier ] || printf '%s\n' '  Image cache    http://\4:8081'
    if [ -f "$home/password" ]; then
      echo "  Password       $(cat "$home/password")"
      echo
      echo 'Log in here as admin with the same password; then sudo flasher-setup changes it.'
    fi
    echo
  } >/run/issue.d/50-flasher.issue
}

/** Kernel options of every boot of the live system, from a server or from a medium. */

/**
 * Found on real hardware: nouveau hangs on some boards, a BMC's virtual USB network card wins the
 * race for an address, and systemd would mount partitions of the disk that is about to be written.
 */
export const LIVE_QUIRKS = [
  ['plymouth.enable', '0'],
  ['modprobe.blacklist', 'nouveau,rndis_host'],
  ['nouveau.modeset', '0'],
  ['systemd.gpt_auto', '0'],
] as const

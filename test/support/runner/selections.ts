/** Selections of tests by name, for the `pnpm` scripts: which test files each of them runs, as patterns of their paths. */

/** Rules that other programs judge, or that are read from a real disk: these start a program or write a file. */
const JUDGED = [
  'build/(app/lock|docs-site|(cache|board|debian|demo|initrd|release|stick)/.*|exfat|host|ipxe/source|iso|live-console|map|pack|prepare|report|script|server/disk)',
  'cache/rules/image-list',
  'engine/(capture/rules/areas|catalog/rules/manifest|image/rules/(bzip2[\\w-]*|format|frame-index|gzip|image-head|seek-map|xz|zstd[\\w-]*))',
  'engine/disk/rules/(boot-entry|partition-tables|partitions)',
  'engine/first-boot/rules/cidata',
  'extending|runner.*|shell',
  'flasher/(link|live-system|order)/[\\w-]+',
  'flasher/(commands/push|cli|wizard/screens/(machine-code|program))',
  'fleet/(boot/rules/dhcp|machine/rules/list-budget)',
  'kit/(foundation/(ssh-signature|system-error|system-text)|net/rules/mac-spellings)',
  'kit/terminal/(command/(completion|manual)|text/server-log)',
  'library/(declarations|formatting)',
  'server/(current/machines/rules/upsert|routes/rules/curl-command)',
].join('|')

/** What touches nothing but memory, which Node is asked to hold it to: rules, command lines, plans. */
const PURE = `(?!(${JUDGED})\\.test)([a-z-]+\\.test|(library|build|flasher|kit/(foundation|terminal)|[\\w/-]+/rules)/.*\\.test|[\\w/-]+\\.rules\\.test)`

/** Rows upon rows of real disks, minutes each, and promises with the product's own times. */
const LONG =
  'loop/(damage|formats|first-boot/engine|capture/(capture|lived|many-layouts))\\.test|[\\w/-]+/real/.*\\.test'

/** Each test file is in one of them. */
export const SELECTIONS: Readonly<Record<string, string>> = {
  pure: `^${PURE}\\.ts$`,
  /** What needs this host: files, sockets, loop devices, databases, browsers. */
  host: `^(?!vm/|(${PURE}|${LONG})\\.ts$).*\\.test\\.ts$`,
  long: `^(${LONG})\\.ts$`,
  'fast-boots': '^vm/fast/.*\\.test\\.ts$',
  boots: '^vm/(?!fast/).*\\.test\\.ts$',
}

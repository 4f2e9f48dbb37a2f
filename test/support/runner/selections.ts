/** Selections of tests by name, for the `pnpm` scripts: which test files each of them runs, as patterns of their paths. */

/** What touches nothing but memory: the rules, the texts, the command lines, the builder's plans. */
const PURE =
  '[a-z-]+\\.test|(library|build/(?!board|exfat|initrd|cache)[\\w/-]+|appliance|flasher|server/(current|earlier|texts)|kit/(foundation|texts|terminal)|[\\w/-]+/rules)/.*\\.test|build/(?!exfat)[\\w-]+\\.test|server/shared-[a-z]+\\.test'

/** Rows upon rows of real disks, minutes each, and promises with the product's own times. */
const LONG =
  'loop/(damage|formats|first-boot/engine|capture/(capture|lived))\\.test|[\\w/-]+/real/.*\\.test'

/** Each test file is in one of them. */
export const SELECTIONS: Readonly<Record<string, string>> = {
  pure: `^(?!(${LONG})\\.ts$)(${PURE})\\.ts$`,
  /** What needs this host: files, sockets, loop devices, databases, browsers. */
  host: `^(?!vm/|(${PURE}|${LONG})\\.ts$).*\\.test\\.ts$`,
  long: `^(${LONG})\\.ts$`,
  'fast-boots': '^vm/fast/.*\\.test\\.ts$',
  boots: '^vm/(?!fast/).*\\.test\\.ts$',
}

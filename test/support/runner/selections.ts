/** Selections of tests by name, for the `pnpm` scripts: which test files each of them runs, as patterns of their paths. */

/** What touches no disk and needs no tool: the rules, the texts, the command lines, the builder. */
const PURE =
  '[a-z-]+\\.test|(library|build|appliance|flasher|server/(current|earlier|texts)|kit/(foundation|texts|terminal)|[\\w/-]+/rules)/.*\\.test|server/shared-[a-z]+\\.test'

/** What needs this host and is about servers: their commands, databases, connections and browsers. */
const SERVICES = '(bin|server|fleet|kit)/.*\\.test'

/** Rows upon rows of real disks, minutes each: they run with the boots, and those beside them in each run. */
const LONG = 'loop/(damage|formats|first-boot/engine|capture/(capture|lived))\\.test'

/** Each test file is in one of them. */
export const SELECTIONS: Readonly<Record<string, string>> = {
  pure: `^(${PURE})\\.ts$`,
  /** What needs this host: files, sockets, loop devices. */
  host: `^(?!vm/|(${PURE}|${SERVICES}|${LONG})\\.ts$).*\\.test\\.ts$`,
  long: `^(${LONG})\\.ts$`,
  services: `^(?!(${PURE})\\.ts$)${SERVICES}\\.ts$`,
  'fast-boots': '^vm/fast/.*\\.test\\.ts$',
  boots: '^vm/(?!fast/).*\\.test\\.ts$',
}

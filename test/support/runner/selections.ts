/** Selections of tests by name, for the `pnpm` scripts: which test files each of them runs, as patterns of their paths. */

/** What touches no disk and needs no tool: the rules, the texts, the command lines, the builder. */
const PURE =
  '[a-z-]+\\.test|(library|build|appliance|flasher|server/(current|earlier|texts)|kit/(foundation|texts|terminal)|[\\w/-]+/rules)/.*\\.test|server/shared-[a-z]+\\.test'

/** What needs this host and is about servers: their commands, databases, connections and browsers. */
const SERVICES = '(bin|server|fleet|kit)/.*\\.test'

/** Each test file is in one of them. */
export const SELECTIONS: Readonly<Record<string, string>> = {
  pure: `^(${PURE})\\.ts$`,
  /** What needs this host: files, sockets, loop devices. */
  host: `^(?!vm/|(${PURE}|${SERVICES})\\.ts$).*\\.test\\.ts$`,
  services: `^(?!(${PURE})\\.ts$)${SERVICES}\\.ts$`,
  'fast-boots': '^vm/fast/.*\\.test\\.ts$',
  boots: '^vm/(?!fast/).*\\.test\\.ts$',
}

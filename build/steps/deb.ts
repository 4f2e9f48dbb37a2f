/** The Debian package of all programs, with their units. */
import { programStep, type BuildFacts, type Level, type Step } from './step.ts'

const OVERLAY = 'overlays/service'
const MANUALS = ['docs/flasher.1', 'docs/flasher-tui.1'] as const

/** Levels of zstd. */
const LEVELS: Readonly<Record<Level, number>> = { dev: 6, release: 19 }

/** Plans the step that makes `flasher.deb`; `arch` is Debian's name of it. */
export const debStep = (arch: string, { version, epoch, level }: BuildFacts): Step =>
  programStep(
    'deb',
    [
      `--arch=${arch}`,
      `--version=${version}`,
      `--epoch=${epoch}`,
      `--level=${LEVELS[level]}`,
      '--out=@deb/flasher.deb',
      ...[OVERLAY, '@server-app/root'].map((tree) => `--tree=${tree}`),
      ...MANUALS.map((path) => `--manual=${path}`),
    ],
    {
      name: 'deb',
      says: 'Debian package',
      inputs: [OVERLAY, '@server-app/root', 'LICENSE', ...MANUALS],
      makes: ['flasher.deb'],
    },
  )

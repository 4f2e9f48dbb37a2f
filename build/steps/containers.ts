/** The servers as container images, in one archive. */
import { programStep, type BuildFacts, type Level, type Step } from './step.ts'

const TREES = ['overlays/service', '@server-app/root', '@tftp/root']
/** Levels of zstd. */
const LEVELS: Readonly<Record<Level, number>> = { dev: 3, release: 19 }
/**
 * Plans the step that makes `images.oci.tar`; `arch` is in the words of the image format: `amd64`.
 */
export const containersStep = (arch: string, { version, epoch, level }: BuildFacts): Step =>
  programStep(
    'containers',
    [
      `--arch=${arch}`,
      `--version=${version}`,
      `--epoch=${epoch}`,
      `--level=${LEVELS[level]}`,
      '--base=@container-base/base',
      ...TREES.map((tree) => `--tree=${tree}`),
      '--out=@containers/images.oci.tar',
    ],
    {
      name: 'containers',
      says: 'container images',
      inputs: ['@container-base/base', ...TREES],
      makes: ['images.oci.tar'],
      tools: true,
    },
  )

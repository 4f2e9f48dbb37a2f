/** The servers as container images, in one archive. */
import { programStep, type BuildFacts, type Level, type Step } from './step.ts'

const OVERLAY = 'overlays/service'
/** Levels of zstd. */
const LEVELS: Readonly<Record<Level, number>> = { dev: 3, release: 19 }
/** The boot files of the TFTP sidecar, under the names that the DHCP recipes use. */
const TFTP = {
  'ipxe.efi': '@ipxe-x86_64/ipxe.efi',
  'ipxe-arm64.efi': '@ipxe-arm64/ipxe.efi',
  'undionly.kpxe': '@ipxe-packages/root/usr/lib/ipxe/undionly.kpxe',
} as const

/** `arch` in the words of the image format: `amd64`. */
export const containersStep = (arch: string, { version, epoch, level }: BuildFacts): Step =>
  programStep(
    'containers',
    [
      `--arch=${arch}`,
      `--version=${version}`,
      `--epoch=${epoch}`,
      `--level=${LEVELS[level]}`,
      '--base=@container-base/base',
      ...[OVERLAY, '@server-app/root'].map((tree) => `--tree=${tree}`),
      ...Object.entries(TFTP).map(([name, from]) => `--tftp=${name}=${from}`),
      '--out=@containers/images.oci.tar',
    ],
    {
      name: 'containers',
      says: 'container images',
      inputs: ['@container-base/base', OVERLAY, '@server-app/root', ...Object.values(TFTP)],
      makes: ['images.oci.tar'],
      tools: true,
    },
  )

/** The stick as files: a folder, a zip archive and the page that fills a stick from it. */
import { programStep, type BuildFacts, type Step } from './step.ts'

interface UsbFilesOptions {
  readonly kernel: string
  readonly initrd: string
  readonly squashfs: string
  /** The root below which the files of Debian's boot packages lie. */
  readonly packages: string
  readonly facts: BuildFacts
}

const PAGE = 'build/stick'

/** Plans the step that makes `flasher-stick/`, `flasher.zip` and `flasher-stick.html`. */
export function usbFilesStep({ facts, ...inputs }: UsbFilesOptions): Step {
  const values = {
    ...inputs,
    page: PAGE,
    version: facts.version,
    epoch: String(facts.epoch),
    out: '@usb-files',
  }
  return programStep(
    'usb-files',
    Object.entries(values).flatMap(([option, value]) => [`--${option}`, value]),
    {
      name: 'usb-files',
      says: 'stick as files, and the page that copies them',
      inputs: [...Object.values(inputs), PAGE],
      makes: ['flasher-stick', 'flasher.zip', 'flasher-stick.html'],
      tools: true,
    },
  )
}

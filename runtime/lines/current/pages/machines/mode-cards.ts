/** The modes of a machine as cards: what it does on network boot. */
import { radioCards } from '../../../../web/ui/fields.ts'
import { html, type Html } from '../../../../web/ui/html.ts'
import type { BootMode } from '../../rules/machine.ts'

export const MODES: Readonly<Record<BootMode, { readonly title: string; readonly text: string }>> =
  {
    'ipxe-exit': { title: 'Boot its disk', text: 'The server leaves the machine alone.' },
    'flasher-flash-once': {
      title: 'Flash once',
      text: 'Erases the disk and flashes the image at the next network boot, then boots the disk.',
    },
    'flasher-flash-always': {
      title: 'Flash always',
      text: 'Erases and flashes at every network boot.',
    },
    'flasher-inventory': {
      title: 'List its disks',
      text: 'Lists disks and hardware, then boots the disk.',
    },
    'flasher-tui': {
      title: 'Open the wizard',
      text: 'A person at the machine chooses image and disk.',
    },
  }

/** Those that flash first, then those that leave the disk alone, then the wizard. */
export const MODE_ORDER = [
  'flasher-flash-once',
  'flasher-flash-always',
  'ipxe-exit',
  'flasher-inventory',
  'flasher-tui',
] as const satisfies readonly BootMode[]

/** `stored`: the mode of the machine; `value`: the one that is shown as selected. */
export const renderModes = (value: string, stored: BootMode): Html =>
  radioCards({
    name: 'boot_mode',
    legend: 'On network boot',
    value,
    stored,
    className: 'modes',
    before: html`<p class="hint unscripted-only">
      An image and a disk alone flash nothing: select Flash once as well.
    </p>`,
    cards: MODE_ORDER.map((mode) => ({ value: mode, ...MODES[mode] })),
  })

/** The modes of a machine as cards: what it does on network boot. */
import { PAGES } from '../../../texts/texts.ts'
import { fill } from '../../../../kit/texts/text.ts'
import { radioCards } from '../../../../kit/web/ui/fields.ts'
import { html, type Html } from '../../../../kit/web/ui/html.ts'
import type { BootMode } from '../../rules/machine.ts'

const t = PAGES.machine.form

export const MODES: Readonly<Record<BootMode, { readonly title: string; readonly text: string }>> =
  PAGES.machine.modes

/** Those that flash first, then those that leave the disk alone, then the wizard. */
const ORDER: readonly BootMode[] = [
  'flasher-flash-once',
  'flasher-flash-always',
  'ipxe-exit',
  'flasher-inventory',
  'flasher-tui',
]

export const MODE_CARDS = ORDER.map((value) => ({ value, ...MODES[value] }))

/** `stored`: the mode of the machine; `value`: the one that is shown as selected. */
export const renderModes = (value: string, stored: BootMode): Html =>
  radioCards({
    name: 'boot_mode',
    legend: t.mode,
    value,
    stored,
    className: 'modes',
    before: html`<p class="hint unscripted-only">
      ${fill(t.modeHint, { mode: MODES['flasher-flash-once'].title })}
    </p>`,
    cards: MODE_CARDS,
  })

/** The modes of a machine as cards: what it does on network boot. */
import {
  BOOT_MODES,
  type BootMode,
  MODES,
  USUAL_FLASH_MODE,
} from '#server/current/rules/boot-mode.ts'
import { PAGES } from '#server/texts/texts.ts'
import { fill } from '#kit/texts/text.ts'
import { radioCards } from '#kit/web/ui/fields.ts'
import { html, type Html } from '#kit/web/ui/html.ts'

const t = PAGES.machine.form

export const MODE_TEXTS: Readonly<
  Record<BootMode, { readonly title: string; readonly text: string }>
> = PAGES.machine.modes

const inOrder = BOOT_MODES.toSorted((one, other) => MODES[one].card - MODES[other].card)
export const MODE_CARDS = inOrder.map((value) => ({ value, ...MODE_TEXTS[value] }))

/** `value`: the selected mode; `isFlashed`: flashed as `stored` says, and not again by itself. */
export const renderModes = (value: string, stored: BootMode, isFlashed: boolean): Html =>
  radioCards({
    name: 'boot_mode',
    legend: t.mode,
    value,
    stored,
    className: 'modes',
    before: html`<p class="hint unscripted-only">
      ${fill(t.modeHint, { mode: MODE_TEXTS[USUAL_FLASH_MODE].title })}
    </p>`,
    cards: isFlashed
      ? MODE_CARDS.map((card) => (card.value === stored ? { ...card, text: t.modeDone } : card))
      : MODE_CARDS,
  })

/** The power of one machine on its page: what was seen of it, its buttons with the calls that do the same, and how it is reached. */
import { BY_AUTHORITY, type PowerEntry, type Bmc } from '#fleet/power/rules/bmc.ts'
import type { PowerAction, PowerState } from '#fleet/power/rules/power.ts'
import { mayContact } from '#fleet/power/rules/reach.ts'
import { printable } from '#kit/foundation/printable.ts'
import { parseMac } from '#kit/net/rules/mac.ts'
import { fill } from '#kit/texts/text.ts'
import { banner, card, copyable, factList, progress, shorten } from '#kit/web/ui/elements.ts'
import { checkField, hidden, postButton } from '#kit/web/ui/fields.ts'
import type { Notice } from '#kit/web/ui/form-notices.ts'
import { fillHtml, html, STRONG, type Content, type Html } from '#kit/web/ui/html.ts'
import { renderTime } from '#kit/web/ui/times.ts'
import { renderCurlBlock, blank, type CurlCall } from '#server/pages/curl-block.ts'
import { machinePath } from '#server/pages/machines/machines-list.ts'
import { opensQuestion, questionButton } from '#server/pages/question.ts'
import type { PowerView } from '#server/power/rules/power-request.ts'
import { PAGES } from '#server/texts/texts.ts'
import type { Machine } from '#server/current/rules/machine.ts'
import type { CurrentContext } from '../view/page-context.ts'
import { renderBmcForm, type BmcFormContent } from './bmc-form.ts'

const t = PAGES.power

export const hasPower = ({ services }: CurrentContext): boolean =>
  services.config.current().power.networks.length > 0

/** Null: no power is controlled here. */
export function renderPowerCard(
  context: CurrentContext,
  { mac, bmc_address: told }: Machine,
  notice: Notice | null,
): Content {
  const { power } = context.services
  const [entry, view] = [power.book.find(mac), power.view(mac)]
  if (entry === null && !hasPower(context)) return null
  const here = machinePath(mac)
  const { networks } = context.services.config.current().power
  const suggested = entry === null && mayContact(told, networks) ? told : null
  return card({
    title: t.title,
    id: 'power',
    body: html`${
      entry === null || view === null
        ? html`<p>${t.none}</p>
            ${renderSuggestion(told, suggested)}`
        : html`<div class="stack" id="power-state">
            ${renderState(context, view)} ${renderButtons(here, entry, view)}
            ${renderReached(context, here, entry, view)}
            ${renderCurlBlock(context, listPowerCalls(mac, entry.bmc, view), 'curl-power')}
          </div>`
    }
    ${renderBmcForm(`${here}/power`, { entry, suggested }, notice, renderCurlBlock(context, [callBmc(mac, { entry, suggested })]))}
    ${entry === null ? null : questionButton({ action: `${here}/power/delete`, label: t.removal.button })}`,
  })
}

/** A machine's word about its BMC is only a suggestion, until a person saves it. */
function renderSuggestion(told: string | null, suggested: string | null): Content {
  if (told === null) return null
  const text = suggested === null ? t.outside : t.suggested
  return html`<p>${fillHtml(text, { address: copyable(told) })}</p>`
}

function renderState(context: CurrentContext, view: PowerView): Html {
  const { state, seen_at, failure, busy, bmc } = view
  const time = renderTime(seen_at, context.clock())
  const sentence =
    bmc['way'] === 'wake-on-lan'
      ? t.cannotTell
      : seen_at === null
        ? t.never
        : fillHtml(t.seen[state], { time, ...STRONG })
  return html`<p class="sentence">${sentence}</p>
    ${
      busy
        ? html`<div class="wide-bar">${progress(null, null, t.busy)}</div>
            <noscript><p class="hint">${t.reload}</p></noscript>`
        : null
    }
    ${failure === null || busy ? null : banner('failed', printable(failure))}`
}

const renderButtons = (here: string, { bmc }: PowerEntry, { state }: PowerView): Html =>
  html`<div class="row">
    ${listPowerChoices(bmc, state).map((choice) => renderButton(`${here}/do/power`, choice))}
  </div>`

const renderButton = (action: string, choice: PowerChoice): Html =>
  isCut(choice)
    ? html`<form class="inline" ${opensQuestion(action)}>
        ${hidden({ choice, confirm: 'ask' })}<button>${t.buttons[choice]}</button>
      </form>`
    : postButton({ action, values: { choice }, label: t.buttons[choice] })

function renderReached(
  context: CurrentContext,
  here: string,
  { bmc }: PowerEntry,
  view: PowerView,
): Html {
  const sharing = listNames(context, view.shares_outlet_with)
  const { certificate, user } = view
  const isSecured = bmc.way === 'redfish' || bmc.way === 'hook' || certificate !== null
  return factList([
    [t.facts.way, t.form.ways[bmc.way]],
    [t.facts.address, bmc.way === 'hook' ? null : copyable(bmc.address)],
    [t.facts.outlet, bmc.outlet === null ? null : printable(bmc.outlet)],
    [t.facts.sharing, view.shares_outlet_with.length === 0 ? null : sharing],
    [t.facts.user, user === null ? null : html`<bdi>${nameUser(view, printable(user))}</bdi>`],
    [t.facts.certificate, isSecured ? renderCertificate(here, certificate) : null],
  ])
}

function nameUser({ credential_from: from, credential_label }: PowerView, user: string): string {
  if (from === 'label') return fill(t.facts.users.label, { user, label: credential_label ?? '' })
  return from === 'all' ? fill(t.facts.users.all, { user }) : user
}

function renderCertificate(here: string, certificate: string | null): Content {
  if (certificate === null) return t.facts.unseen
  const unpin = postButton({ action: `${here}/power/unpin`, label: t.facts.unpin })
  if (certificate === BY_AUTHORITY) return html`${t.facts.authority} ${unpin}`
  return html`${copyable(certificate, html`<span title="${certificate}">${shorten(certificate, 23)}</span>`)}
    <span class="dim">${t.facts.pinned}</span> ${unpin}`
}

export const listNames = (context: CurrentContext, macs: readonly string[]): Html =>
  html`${macs.map(
    (mac, at) =>
      html`${at === 0 ? null : ', '}<a href="${machinePath(mac)}"
          ><bdi>${nameOf(context, mac)}</bdi></a
        >`,
  )}`

const nameOf = (context: CurrentContext, text: string): string => {
  const mac = parseMac(text)
  return mac.ok ? context.nameOf(mac.value) : text
}

/** In the question before a flash: boot the machine right now. Null: nothing can. */
export function renderBootField(context: CurrentContext, { mac }: Machine): Content {
  const { book } = context.services.power
  const entry = book.find(mac)
  const boot = entry === null ? null : chooseBoot(entry.bmc)
  if (boot === null) return null
  if (boot === 'network') return checkField({ name: 'power', label: t.flash.wake, checked: false })
  const sharing = book.listSharing(mac)
  const names = listNames(context, sharing)
  const field = checkField({
    name: 'power',
    label: t.flash.label,
    hint: t.flash.hint,
    checked: false,
  })
  return sharing.length === 0
    ? field
    : html`${field}
        <p class="warning">${fillHtml(t.question.shared, { names })}</p>`
}

export const POWER_CHOICES = {
  on: { action: 'on', boot: null },
  network: { action: 'on', boot: 'network' },
  'network-restart': { action: 'restart', boot: 'network' },
  restart: { action: 'restart', boot: null },
  off: { action: 'off', boot: null },
  read: { action: 'read', boot: null },
} as const satisfies Readonly<
  Record<string, { readonly action: PowerAction; readonly boot: 'network' | null }>
>
export type PowerChoice = keyof typeof POWER_CHOICES

export const CHOICE_NAMES = [
  'on',
  'network',
  'network-restart',
  'restart',
  'off',
  'read',
] as const satisfies readonly PowerChoice[]

export const parseChoice = (text: string | null): PowerChoice | null =>
  CHOICE_NAMES.find((name) => name === text) ?? null

/** It ends what runs on the machine. */
export const isCut = (choice: PowerChoice): boolean =>
  POWER_CHOICES[choice].action === 'off' || POWER_CHOICES[choice].action === 'restart'

/** In the order of the buttons. */
export function listPowerChoices(bmc: Bmc, state: PowerState): readonly PowerChoice[] {
  const { canOn, canOff, canRead } = abilitiesOf(bmc)
  const isOffered: Readonly<Record<PowerChoice, boolean>> = {
    on: canOn && state !== 'on',
    // If it may be on, only a restart surely boots it.
    network: canOn && (state === 'off' || !canOff),
    'network-restart': canOn && canOff && state !== 'off',
    restart: canOn && canOff && state !== 'off',
    off: canOff && state !== 'off',
    read: canRead,
  }
  return CHOICE_NAMES.filter((name) => isOffered[name])
}

/** Whatever its state; null: nothing does. */
export function chooseBoot(bmc: Bmc): 'network' | 'network-restart' | null {
  const { canOn, canOff } = abilitiesOf(bmc)
  if (!canOn) return null
  return canOff ? 'network-restart' : 'network'
}

function abilitiesOf(bmc: Bmc) {
  if (bmc.way === 'wake-on-lan') return { canOn: true, canOff: false, canRead: false }
  if (bmc.way !== 'hook') return { canOn: true, canOff: true, canRead: true }
  return { canOn: bmc.on !== null, canOff: bmc.off !== null, canRead: bmc.state !== null }
}

export const callPower = (mac: string, choice: PowerChoice): CurlCall => ({
  method: 'POST',
  path: `/machines/${mac}/power`,
  body: POWER_CHOICES[choice],
  scope: 'power',
})

/** Only buttons without a question. */
const listPowerCalls = (
  mac: string,
  bmc: Bmc,
  { state, certificate }: PowerView,
): readonly CurlCall[] => [
  ...listPowerChoices(bmc, state)
    .filter((choice) => !isCut(choice))
    .map((choice) => ({ ...callPower(mac, choice), label: t.buttons[choice] })),
  ...(certificate === null
    ? []
    : [
        {
          method: 'DELETE',
          path: `/machines/${mac}/power/certificate`,
          scope: 'admin',
          label: t.facts.unpin,
        } as const,
      ]),
]

/** Without a credential, the present one stays. */
const callBmc = (mac: string, { entry, suggested }: BmcFormContent): CurlCall => ({
  method: 'PUT',
  path: `/machines/${mac}/power`,
  body: entry === null ? suggest(suggested) : entry.bmc,
  scope: 'admin',
})

const suggest = (address: string | null) => ({
  way: address === null ? 'redfish' : 'ipmi',
  address: address ?? blank('address'),
  credential: { user: blank('user'), password: blank('password') },
})

/** The power of one machine on its page: what was seen of it, its buttons with the calls that do the same, and how it is reached. */
import { BY_AUTHORITY, type PowerEntry, type Bmc } from '#fleet/power/rules/bmc.ts'
import { mayContact, type PowerAction, type PowerState } from '#fleet/power/rules/power.ts'
import { printable } from '#kit/foundation/printable.ts'
import { parseMac } from '#kit/net/rules/mac.ts'
import {
  banner,
  card,
  copyable,
  factList,
  foldedCard,
  progress,
  shorten,
} from '#kit/web/ui/elements.ts'
import { checkField, hidden, postButton, textField } from '#kit/web/ui/fields.ts'
import type { Notice } from '#kit/web/ui/form-notices.ts'
import { fillHtml, html, STRONG, type Content, type Html } from '#kit/web/ui/html.ts'
import { renderTime } from '#kit/web/ui/times.ts'
import { renderCurlBlock, blank, type CurlCall } from '#server/pages/curl-block.ts'
import { machinePath } from '#server/pages/machines/machines-list.ts'
import { opensQuestion, questionButton } from '#server/pages/question.ts'
import type { PowerView } from '#server/power/rules/power-request.ts'
import type { Machine } from '#server/current/machines/rules/machine.ts'
import type { CurrentContext } from '#server/current/view/page-context.ts'
import { renderBmcForm, type BmcFormContent } from './bmc-form.ts'

export const hasPower = ({ services }: CurrentContext): boolean =>
  services.config.current().power.networks.length > 0

export const NETWORKS_FIELD = 'networks'

/** Null: no power is controlled here, and this caller cannot change that. */
export function renderPowerCard(
  context: CurrentContext,
  { mac, bmc_address: reported }: Machine,
  notice: Notice | null,
): Content {
  const { power } = context.services
  const [entry, view] = [power.book.find(mac), power.view(mac)]
  const here = machinePath(mac)
  if (entry === null && !hasPower(context)) return renderOff(context, here, reported, notice)
  const { networks } = context.services.config.current().power
  const suggested = entry === null && mayContact(reported, networks) ? reported : null
  const content = { entry, suggested }
  return card({
    title: 'Power',
    id: 'power',
    body: html`${
      entry === null || view === null
        ? html`<p>${'Connect a BMC or a smart plug to turn this machine on and off from here.'}</p>
            ${renderSuggestion(reported, suggested)}`
        : html`<div class="stack" id="power-state">
            ${renderState(context, view)} ${renderButtons(here, entry, view)}
            ${renderReached(context, here, entry, view)}
            ${renderCurlBlock(context, listPowerCalls(mac, entry.bmc, view), 'curl-power')}
          </div>`
    }
    ${renderBmcForm(`${here}/power${context.event.url.search}`, content, notice, renderCurlBlock(context, [callBmc(mac, content)]))}
    ${entry === null ? null : questionButton({ action: `${here}/power/delete`, label: 'Forget BMC…' })}`,
  })
}

function renderOff(
  context: CurrentContext,
  here: string,
  reported: string | null,
  notice: Notice | null,
): Content {
  const path = `${here}/power/networks`
  const { config } = context.services
  const isFixed = config.originOf('power', 'networks')?.by === 'environment'
  if (isFixed || !context.site.mayOpen(context.event, path, 'POST')) return null
  const typed = notice?.typed[NETWORKS_FIELD]
  const hint = `Addresses and ranges such as 10.0.5.0/24, separated by commas.${
    reported === null ? '' : ` This machine reports a BMC at ${reported}.`
  }`
  return foldedCard({
    title: 'Power',
    id: 'power',
    about: 'Off: allow the network of your BMCs',
    isOpen: typed !== undefined,
    body: html`<p>
        Power control is off. Allow the network of your BMCs to turn machines on and off from here.
      </p>
      <form method="post" action="${path}">
        ${textField({
          name: NETWORKS_FIELD,
          label: 'Networks of your BMCs',
          value: typed ?? '',
          hint,
          error: typed === undefined ? null : (notice?.error ?? null),
          mono: true,
          required: true,
        })}
        <button>Allow</button>
      </form>`,
  })
}

/** A machine's word about its BMC is only a suggestion, until a person saves it. */
function renderSuggestion(reported: string | null, suggested: string | null): Content {
  if (reported === null) return null
  const text =
    suggested === null
      ? 'The machine reports a BMC at {address}, which is outside the networks of your BMCs. The server does not contact it.'
      : 'The machine reports a BMC at {address}. Make sure that this is its BMC before you save the form: the user and the password are sent there.'
  return html`<p>${fillHtml(text, { address: copyable(reported) })}</p>`
}

/** `{strong}` to `{end}` is emphasized. */
const SEEN = {
  on: '{strong}On{end}, seen {time}.',
  off: '{strong}Off{end}, seen {time}.',
  unknown: '{strong}State unknown{end}, asked {time}.',
} as const

function renderState(context: CurrentContext, view: PowerView): Html {
  const { state, seen_at, failure, busy, bmc } = view
  const time = renderTime(seen_at, context.clock())
  const sentence =
    bmc['way'] === 'wake-on-lan'
      ? 'This way cannot tell whether the machine is on.'
      : seen_at === null
        ? 'Its power state has not been read since the server started.'
        : fillHtml(SEEN[state], { time, ...STRONG })
  return html`<p class="sentence">${sentence}</p>
    ${
      busy
        ? html`<div class="wide-bar">${progress(null, null, 'A request is under way')}</div>
            <noscript><p class="hint">Load the page again to see what became of it.</p></noscript>`
        : null
    }
    ${failure === null || busy ? null : banner('failed', printable(failure))}`
}

const renderButtons = (here: string, { bmc }: PowerEntry, { state }: PowerView): Html =>
  html`<div class="row">
    ${listPowerChoices(bmc, state).map((choice) => renderButton(`${here}/do/power`, choice))}
  </div>`

const BUTTONS = {
  on: 'Turn on',
  network: 'Turn on from network',
  'network-restart': 'Restart from network…',
  off: 'Turn off…',
  restart: 'Restart…',
  read: 'Read state',
} as const

const renderButton = (action: string, choice: PowerChoice): Html =>
  isCut(choice)
    ? html`<form class="inline" ${opensQuestion(action)}>
        ${hidden({ choice, confirm: 'ask' })}<button>${BUTTONS[choice]}</button>
      </form>`
    : postButton({ action, values: { choice }, label: BUTTONS[choice] })

const WAYS = {
  redfish: 'Redfish',
  ipmi: 'IPMI',
  'wake-on-lan': 'Wake-on-LAN',
  hook: 'URLs of a power outlet, a plug or a KVM',
} as const

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
    ['Type', WAYS[bmc.way]],
    ['Address', bmc.way === 'hook' ? null : copyable(bmc.address)],
    ['Outlet', bmc.outlet === null ? null : printable(bmc.outlet)],
    ['At the same outlet', view.shares_outlet_with.length === 0 ? null : sharing],
    ['User', user === null ? null : html`<bdi>${nameUser(view, printable(user))}</bdi>`],
    ['Certificate', isSecured ? renderCertificate(here, certificate) : null],
  ])
}

function nameUser({ credential_from: from, credential_label }: PowerView, user: string): string {
  if (from === 'label') return `${user}, of the label ${credential_label ?? ''}`
  return from === 'all' ? `${user}, of all machines` : user
}

function renderCertificate(here: string, certificate: string | null): Content {
  if (certificate === null)
    return 'No certificate yet. The first one that it presents will be trusted.'
  const unpin = postButton({ action: `${here}/power/unpin`, label: 'Forget certificate' })
  if (certificate === BY_AUTHORITY) return html`An authority vouches for it. ${unpin}`
  return html`${copyable(certificate, html`<span title="${certificate}">${shorten(certificate, 23)}</span>`)}
    <span class="dim">SHA-256; only this one is accepted.</span> ${unpin}`
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
  if (boot === 'network')
    return checkField({ name: 'power', label: 'Turn it on now', checked: false })
  const sharing = book.listSharing(mac)
  const names = listNames(context, sharing)
  const field = checkField({
    name: 'power',
    label: 'Turn it on, or restart it, from the network now',
    hint: 'What runs on it ends. Otherwise it is flashed at its next network boot.',
    checked: false,
  })
  return sharing.length === 0
    ? field
    : html`${field}
        <p class="warning">At the same outlet, and without power as well: ${names}.</p>`
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
    .map((choice) => ({ ...callPower(mac, choice), label: BUTTONS[choice] })),
  ...(certificate === null
    ? []
    : [
        {
          method: 'DELETE',
          path: `/machines/${mac}/power/certificate`,
          scope: 'admin',
          label: 'Forget certificate',
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

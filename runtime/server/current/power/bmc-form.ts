/** The form that says how the power of a machine is reached: its fields, what they mean, how it looks. */
import type { z } from 'zod'
import {
  BmcSchema,
  BY_AUTHORITY,
  CredentialSchema,
  type Bmc,
  type Credential,
  changeEntry,
  type PowerEntry,
} from '#fleet/power/rules/bmc.ts'
import type { PowerTested } from '#fleet/power/rules/power.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { banner, shorten } from '#kit/web/ui/elements.ts'
import { mapNames, selectField, textField } from '#kit/web/ui/fields.ts'
import type { Notice } from '#kit/web/ui/form-notices.ts'
import { html, type Content, type Html } from '#kit/web/ui/html.ts'

const URLS = ['on', 'off', 'state', 'network'] as const
const ADVANCED = ['outlet', 'firmware', 'system', 'http_boot', 'network', 'method'] as const
const BMC_FIELDS = [
  'way',
  'address',
  'user',
  'password',
  'on',
  'off',
  'state',
  ...ADVANCED,
] as const
type BmcField = (typeof BMC_FIELDS)[number]
export type BmcValues = Readonly<Record<BmcField, string>>

/** The prefix keeps it apart from the page's other forms. */
const nameOf = (field: BmcField) => `bmc_${field}`
/** With the typed values: the refused field. */
const REFUSED = 'bmc-refused'
const MAX_LENGTH = 2000

/** `notice`: of the test before. Its password counts on for the address and user that it was typed for. */
export function readBmcForm(form: URLSearchParams, notice: Notice | null = null): BmcValues {
  const values = mapNames(BMC_FIELDS, (field) => {
    const text = form.get(nameOf(field))?.slice(0, MAX_LENGTH) ?? ''
    return field === 'password' ? text : text.trim()
  })
  const isSame = PLACE.every((field) => values[field] === notice?.typed[nameOf(field)])
  const tested = (isSame && notice?.typed[nameOf('password')]) || ''
  return values.password === '' ? { ...values, password: tested } : values
}

const PLACE = ['way', 'address', 'user', ...URLS] as const

/** With the typed values: what a test found. Among the errors: that it failed. */
export const BMC_TEST = 'bmc-test'

/** With the password, which stays on the server and is not shown. */
export const testedBmc = (values: BmcValues, text: string): Notice['typed'] => ({
  ...Object.fromEntries(BMC_FIELDS.map((field) => [nameOf(field), values[field]])),
  [BMC_TEST]: text,
})

const CAN = {
  on: 'turn on',
  off: 'turn off',
  network: 'boot from the network',
  http: 'boot over HTTP',
  cd: 'boot a virtual CD',
} as const

export function renderTested({ state, model, firmware, certificate, can }: PowerTested): string {
  const shown =
    certificate === BY_AUTHORITY ? 'signed by a trusted authority' : shorten(certificate ?? '', 23)
  return [
    state === null ? 'This way cannot tell whether the machine is on.' : `It answers: ${state}.`,
    model && `Model: ${model}.`,
    firmware && `Firmware: ${firmware}.`,
    certificate && `Certificate: ${shown}.`,
    can.length > 0 && `It can ${can.map((each) => CAN[each]).join(', ')}.`,
    'Nothing is saved yet.',
  ]
    .filter(Boolean)
    .join(' ')
}

interface BmcRefusal {
  readonly field: BmcField
  readonly text: string
}

/** Without the password. */
export const typedBmc = (values: BmcValues, { field }: BmcRefusal): Notice['typed'] => ({
  ...Object.fromEntries(
    BMC_FIELDS.filter((each) => each !== 'password').map((each) => [nameOf(each), values[each]]),
  ),
  [REFUSED]: field,
})

interface BmcEdit {
  readonly bmc: Bmc
  /** Undefined: unchanged. */
  readonly credential: Credential | null | undefined
}

/** `before`: what the machine has now. */
export function parseBmcForm(
  values: BmcValues,
  before: PowerEntry | null,
): Result<BmcEdit, BmcRefusal> {
  const parsed = BmcSchema.safeParse(layBmc(values))
  if (!parsed.success) return refuse(wrong(fieldOf(parsed.error)))
  const bmc = parsed.data
  const isShared = values.user === '' && values.password === ''
  if (bmc.way === 'wake-on-lan' || isShared) return accept({ bmc, credential: null })
  return values.password === '' ? keepPassword(values, bmc, before) : setPassword(values, bmc)
}

const WRONG = {
  way: 'Select a type.',
  address: 'Must be a host name or IP address, with or without a port.',
  system: 'At most 200 characters.',
  user: 'At most 255 characters, none of them a control character.',
  password: 'At most 255 characters, none of them a control character.',
  passwordMissing: 'Enter the password as well: it is not sent to another address or user.',
  firmware: 'Select one.',
  outlet: 'At most 100 characters, none of them a control character.',
  url: 'Must be an http or https address without user and password.',
  method: 'GET or POST.',
} as const

/** A password goes only to the address and user that it was given for. */
function keepPassword(
  { user }: BmcValues,
  bmc: Bmc,
  before: PowerEntry | null,
): Result<BmcEdit, BmcRefusal> {
  const kept = changeEntry(before, { bmc, credential: undefined }).credential
  return kept?.user === user
    ? accept({ bmc, credential: undefined })
    : refuse({ field: 'password', text: WRONG.passwordMissing })
}

function setPassword({ user, password }: BmcValues, bmc: Bmc): Result<BmcEdit, BmcRefusal> {
  const parsed = CredentialSchema.safeParse({ user, password })
  return parsed.success
    ? accept({ bmc, credential: parsed.data })
    : refuse(wrong(fieldOf(parsed.error)))
}

function fieldOf({ issues }: z.ZodError): BmcField {
  const [name] = issues[0]?.path ?? []
  return BMC_FIELDS.find((field) => field === name) ?? 'way'
}

const isUrl = (field: BmcField): boolean =>
  field === 'http_boot' || URLS.some((each) => each === field)

function wrong(field: BmcField): BmcRefusal {
  const texts: Readonly<Record<string, string>> = WRONG
  return { field, text: texts[isUrl(field) ? 'url' : field] ?? WRONG.way }
}

function layBmc(values: BmcValues): object {
  const { way, address, firmware, system, method } = values
  const common = { way, firmware: firmware || 'uefi', outlet: values.outlet || null }
  switch (way) {
    case 'hook':
      return {
        ...common,
        ...mapNames(URLS, (verb) => values[verb] || null),
        method: method || 'POST',
      }
    case 'redfish':
      return { ...common, address, system: system || null, http_boot: values.http_boot || null }
    default:
      return { ...common, address }
  }
}

function valuesOf({ entry, suggested }: BmcFormContent): BmcValues {
  const empty = { ...mapNames(BMC_FIELDS, () => ''), way: 'redfish', method: 'POST' }
  if (entry === null) {
    // The machine has read the address over IPMI.
    return suggested === null ? empty : { ...empty, way: 'ipmi', address: suggested }
  }
  const stored: Readonly<Record<string, unknown>> = { ...entry.bmc, user: entry.credential?.user }
  return mapNames(BMC_FIELDS, (field) => {
    const value = stored[field]
    return typeof value === 'string' ? value : empty[field]
  })
}

export interface BmcFormContent {
  readonly entry: PowerEntry | null
  /** Unused until somebody saves the form. */
  readonly suggested: string | null
}

export function renderBmcForm(
  action: string,
  content: BmcFormContent,
  notice: Notice | null,
  command: Content = null,
): Html {
  const stored = valuesOf(content)
  const names = Object.keys(notice?.typed ?? {})
  const isOpen =
    content.suggested !== null || [REFUSED, BMC_TEST].some((name) => names.includes(name))
  const value = (field: BmcField) => notice?.typed[nameOf(field)] ?? stored[field]
  const refused = notice?.typed[REFUSED]
  const line = (field: BmcField, label: string, hint?: string, type?: 'password' | 'url') =>
    textField({
      name: nameOf(field),
      label,
      value: field === 'password' ? '' : value(field),
      error: field === refused ? (notice?.error ?? null) : null,
      maxLength: field === 'address' || isUrl(field) ? MAX_LENGTH : 255,
      ...(hint === undefined ? {} : { hint }),
      ...(type === undefined ? {} : { type }),
      ...(field === 'password' ? { autocomplete: 'new-password' } : {}),
    })
  return html`<details class="bmc" id="bmc" ${isOpen ? 'open' : null}>
    <summary>${content.entry === null ? 'Set its BMC' : 'Change its BMC'}</summary>
    <form method="post" action="${action}">
      ${choice('way', 'Type', value('way'), { redfish: 'Redfish', ipmi: 'IPMI', 'wake-on-lan': 'Wake-on-LAN', hook: 'Power outlet, plug or KVM, by URL' })}
      <div class="by-address">
        ${line('address', 'Address', 'Host name or IP address, with a port if you like. For Wake-on-LAN, the broadcast address of its network.')}
      </div>
      <div class="by-url">
        ${line('on', 'URL that turns it on', '{mac} in a URL becomes the MAC address of the machine.', 'url')}
        ${line('off', 'URL that turns it off', undefined, 'url')}
        ${line('state', 'URL that tells its state', undefined, 'url')}
      </div>
      <div class="by-user">
        ${line('user', 'User', 'Leave empty to use the user of a label or of all machines.')}
        ${line('password', 'Password', 'Leave empty to keep the current one, or that of the last test.', 'password')}
      </div>
      <details ${ADVANCED.some((field) => field === refused) ? 'open' : null}>
        <summary>Advanced</summary>
        ${line('outlet', 'Shared outlet', 'Machines with the same outlet name are switched together.')}
        <div class="by-address">
          ${choice('firmware', 'Firmware', value('firmware'), { uefi: 'UEFI', bios: 'BIOS' })}
        </div>
        <div class="by-system">
          ${line('system', 'System', 'Only if the BMC has several.')}
          ${line('http_boot', 'HTTP Boot URL', 'The boot file to load from the network with UEFI, such as http://SERVER:8080/boot/ipxe.efi. Leave empty for PXE.', 'url')}
        </div>
        <div class="by-url">
          ${line('network', 'URL that sets the network as next boot device', undefined, 'url')}
          ${choice('method', 'Method', value('method'), { POST: 'POST', GET: 'GET' })}
        </div>
      </details>
      <div class="row">
        <button>Save</button>
        <button name="test" value="1">Test</button>
        <span class="hint">Test asks the BMC and saves nothing.</span>
      </div>
      ${renderTest(notice)}
    </form>
    ${command}
  </details>`
}

function renderTest(notice: Notice | null): Content {
  const text = notice?.typed[BMC_TEST]
  const tone = notice?.errors[BMC_TEST] === undefined ? 'done' : 'failed'
  return text === undefined ? null : html`<div id="${BMC_TEST}">${banner(tone, text)}</div>`
}

const choice = (
  field: BmcField,
  label: string,
  value: string,
  texts: Readonly<Record<string, string>>,
): Html =>
  selectField({
    name: nameOf(field),
    label,
    value,
    options: Object.entries(texts).map(([option, text]) => ({ value: option, text })),
  })

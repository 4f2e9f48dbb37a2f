/** The form that says how the power of a machine is reached: its fields, what they mean, how it looks. */
import type { z } from 'zod'
import {
  BmcSchema,
  CredentialSchema,
  type Bmc,
  type Credential,
  changeEntry,
  type PowerEntry,
} from '#fleet/power/rules/bmc.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { fill } from '#kit/texts/text.ts'
import { mapNames, selectField, textField } from '#kit/web/ui/fields.ts'
import type { Notice } from '#kit/web/ui/form-notices.ts'
import { html, type Content, type Html } from '#kit/web/ui/html.ts'
import { PAGES } from '#server/texts/texts.ts'

const t = PAGES.power.form

const URLS = ['on', 'off', 'state', 'network'] as const
const BMC_FIELDS = [
  'way',
  'address',
  'user',
  'password',
  'firmware',
  'outlet',
  'system',
  'http_boot',
  ...URLS,
  'method',
] as const
type BmcField = (typeof BMC_FIELDS)[number]
type BmcValues = Readonly<Record<BmcField, string>>

/** The prefix keeps it apart from the page's other forms. */
const nameOf = (field: BmcField) => `bmc_${field}`
/** With the typed values: the refused field. */
const REFUSED = 'bmc-refused'
const MAX_LENGTH = 2000

export const readBmcForm = (form: URLSearchParams): BmcValues =>
  mapNames(BMC_FIELDS, (field) => {
    const text = form.get(nameOf(field))?.slice(0, MAX_LENGTH) ?? ''
    return field === 'password' ? text : text.trim()
  })

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

/** A password goes only to the address and user that it was given for. */
function keepPassword(
  { user }: BmcValues,
  bmc: Bmc,
  before: PowerEntry | null,
): Result<BmcEdit, BmcRefusal> {
  const kept = changeEntry(before, { bmc, credential: undefined }).credential
  return kept?.user === user
    ? accept({ bmc, credential: undefined })
    : refuse({ field: 'password', text: t.wrong.passwordMissing })
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
  const texts: Readonly<Record<string, string>> = t.wrong
  return { field, text: texts[isUrl(field) ? 'url' : field] ?? t.wrong.way }
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
  const isOpen = notice?.typed[REFUSED] !== undefined || content.suggested !== null
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
    <summary>${content.entry === null ? t.set : t.change}</summary>
    <form method="post" action="${action}">
      ${choice('way', t.way, value('way'), t.ways)}
      <div class="by-address">
        ${line('address', t.address, t.addressHint)}
        ${choice('firmware', PAGES.power.form.firmware, value('firmware'), t.firmwares)}
      </div>
      <div class="by-url">
        ${line('on', t.on, fill(t.urlHint, { mac: '{mac}' }), 'url')}
        ${line('off', t.off, undefined, 'url')} ${line('state', t.state, undefined, 'url')}
        ${line('network', t.network, undefined, 'url')}
        ${choice('method', t.method, value('method'), { POST: 'POST', GET: 'GET' })}
      </div>
      <div class="by-user">
        ${line('user', t.user, t.userHint)}
        ${line('password', t.password, t.passwordHint, 'password')}
      </div>
      ${line('outlet', t.outlet, t.outletHint)}
      <div class="by-system">
        ${line('system', t.system, t.systemHint)}
        ${line('http_boot', t.httpBoot, t.httpBootHint, 'url')}
      </div>
      <button>${t.save}</button>
    </form>
    ${command}
  </details>`
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

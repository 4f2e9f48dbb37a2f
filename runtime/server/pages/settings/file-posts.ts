/** Handles the posts of the settings page that change lines of configuration files. */
import { upperFirst } from '#kit/foundation/text.ts'
import type { Answer } from '#kit/web/answers/answers.ts'
import { compareFields } from '#fleet/state/rules/event-table.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { REACH_SETTINGS } from '#kit/config/rules/shared-settings.ts'
import type { ShownSetting } from '#kit/config/rules/settings-parser.ts'
import { renderEditRefusal, type ConfigEdit, type RefusedEdits } from '#kit/config/config.ts'
import { peerOf } from '#kit/web/answers/caller.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import { accept } from '#kit/foundation/result.ts'
import { formAt, type ContextRoute } from '../context-routes.ts'
import type { PageContext } from '../page-context.ts'
import { savedAddress, SEARCH_FIELD, searchOf, SETTINGS_PATH, findRow } from './settings-list.ts'
import { inputOf } from './setting-fields.ts'

const EDITED = ['section', 'key', 'value'] as const

/** Bytes: lists of keys are long, and the form has their old and new text. */
const MAX_FORM = 256 * 1024

/** For settings of cards, which are not in files. */
export interface CardStore {
  /** Errors by dotted name. */
  check(given: CardTexts): ReadonlyMap<string, string>
  /** After `check`. Records the event. */
  save(given: CardTexts): Promise<void>
}

/** By dotted name; an empty text removes the saved value. */
type CardTexts = Readonly<Record<string, string>>

export const filePosts = <C extends PageContext>(
  cardsOf: (context: C) => CardStore = () => NO_CARDS,
): readonly ContextRoute<C>[] => [
  formAt(
    `${SETTINGS_PATH}/config`,
    'admin',
    (context: C, form) => saveConfig(context, form, { cards: cardsOf(context) }),
    { most: MAX_FORM },
  ),
  formAt(`${SETTINGS_PATH}/config/edit`, 'admin', (context: C, form) => editConfig(context, form)),
]

const NO_CARDS: CardStore = { check: () => new Map(), save: async () => {} }

/** A misspelt field would be ignored silently, so it is refused. */
export function checkFields(form: URLSearchParams, known: readonly string[]): void {
  const stray = [...form.keys()].find((field) => field !== SEARCH_FIELD && !known.includes(field))
  if (stray !== undefined) throw refuse(422, `the form has no field ${stray.slice(0, 40)}`)
  if ([...form.keys()].every((field) => field === SEARCH_FIELD))
    throw refuse(422, 'the form has nothing to save')
}

/** `Must be a whole number from 1 to 65535, not "x".` */
export const describeError = (error: string): string => `${upperFirst(error)}.`

/** Of secrets only whether they are set. */
export const readShown = ({ services }: PageContext, names: readonly string[]) =>
  Object.fromEntries(
    services.config
      .list()
      .filter(({ name }) => names.includes(name))
      .map(({ name, shown }) => [name, shown || null]),
  )

/** As the deployed server takes it; an empty value removes the key. */
async function editConfig(context: PageContext, form: URLSearchParams): Promise<Answer> {
  checkFields(form, EDITED)
  const [section, key, text] = [form.get('section'), form.get('key'), form.get('value')]
  if (section === null || key === null || text === null) {
    throw refuse(422, `one of the fields ${EDITED.join(', ')} is missing`)
  }
  const edits = [{ section, key, text }]
  const asked = { form, edits, page: SETTINGS_PATH }
  return (await applyEdits(context, { ...asked, all: edits })) ?? answerSaved(context, asked)
}

/**
 * Each setting has its name and, under `was:` and its name, what the page showed: fields that
 * nobody changed here stay, even if somebody else changed them. `reset` names a setting to remove.
 */
export async function saveConfig(
  context: PageContext,
  form: URLSearchParams,
  { cards = NO_CARDS, page = SETTINGS_PATH }: SavedForm,
): Promise<Answer> {
  const rows = context.services.config.list()
  const names = rows.map(({ name }) => name)
  checkFields(form, ['reset', ...names, ...names.map((name) => `was:${name}`)])
  const edits = rows
    .map((row) => ({ row, text: readChanged(form, row) }))
    .flatMap(({ row, text }): readonly NamedEdit[] => (text === null ? [] : [{ ...row, text }]))
  if (edits.length === 0) {
    return context.goTo(savedAddress(form, { saved: 'unchanged', names: [], anchor: null }, page))
  }
  const [ofCards, ofFiles] = splitByCard(edits)
  const refused = checkCards(form, ofCards, rows, cards)
  if (refused.size > 0) return answerRefusals(context, { form, edits, page }, refused)
  const given = Object.fromEntries(ofCards.map(({ name, text }) => [name, text]))
  if (ofFiles.length === 0) {
    await cards.save(given)
    return answerSaved(context, { form, edits, page }, 'upstream')
  }
  const failed = await applyEdits(context, { form, all: edits, edits: ofFiles, page }, (present) =>
    findStale(form, ofFiles, present),
  )
  if (failed !== null) return failed
  await cards.save(given)
  return answerSaved(context, { form, edits, page })
}

const splitByCard = (edits: readonly NamedEdit[]) =>
  [edits.filter(isKept), edits.filter((edit) => !isKept(edit))] as const

/** What a page saved in the database is changed there. */
const isKept = ({ setting, origin }: NamedEdit) =>
  setting.card !== null || origin.by === 'settings-page'

/** Before any file is written: a form is saved whole or not at all. */
function checkCards(
  form: URLSearchParams,
  edits: readonly NamedEdit[],
  present: readonly ShownSetting[],
  cards: CardStore,
): ReadonlyMap<string, string> {
  const stale = [...findStale(form, edits, present)].map(
    ([name, why]) => [name, describeError(describeRefusal(why))] as const,
  )
  const wrong = cards.check(Object.fromEntries(edits.map(({ name, text }) => [name, text])))
  return new Map([
    ...stale,
    ...[...wrong].map(([name, error]) => [name, describeError(error)] as const),
  ])
}

/** Changed by somebody else meanwhile, and to another value than is wanted. */
function findStale(
  form: URLSearchParams,
  edits: readonly NamedEdit[],
  present: readonly ShownSetting[],
): RefusedEdits {
  const stale = edits.flatMap(({ name, text }): readonly (readonly [string, Stale])[] => {
    const row = present.find((each) => each.name === name)
    // A removal does not depend on the value.
    const was = form.get('reset') === name ? null : form.get(`was:${name}`)
    const now = row === undefined ? '' : inputOf(row)
    const isStale = was !== null && readLines(was) !== now && text !== now
    return isStale ? [[name, { why: 'stale', present: now }]] : []
  })
  return new Map(stale)
}

type NamedEdit = ConfigEdit & Pick<ShownSetting, 'name' | 'setting' | 'origin'>
type Stale = { readonly why: 'stale'; readonly present: string }

/** Null: not changed on this page. */
function readChanged(form: URLSearchParams, row: ShownSetting): string | null {
  if (form.get('reset') === row.name) return ''
  const text = readTyped(form, row)
  // Blanks are no secret, and do not remove one.
  if (row.setting.isSecret && text?.trim() === '') return null
  return text === readLines(form.get(`was:${row.name}`) ?? '') ? null : text
}

/** Browsers send CR LF. */
const readLines = (text: string): string => text.replaceAll('\r\n', '\n').trim()

/** The last of its name: a switch that is off sends only its hidden field. Null: no such field. */
function readTyped(form: URLSearchParams, { name, setting }: ShownSetting): string | null {
  const text = form.getAll(name).at(-1)
  if (text === undefined) return null
  return setting.isSecret ? text : readLines(text)
}

interface SavedForm {
  /** Absent: all of its settings are in files. */
  readonly cards?: CardStore
  /** The page that the form is on; absent: the settings page. */
  readonly page?: string
}

interface PostedEdits {
  readonly form: URLSearchParams
  readonly edits: readonly ConfigEdit[]
  readonly page: string
}

interface Edits extends PostedEdits {
  readonly all: readonly ConfigEdit[]
}

/** Records the changes. Null: all is written; else the answer. */
async function applyEdits(
  context: PageContext,
  { form, all, edits, page }: Edits,
  check?: (present: readonly ShownSetting[]) => RefusedEdits,
): Promise<Answer | null> {
  const refused = { form, edits: all, page }
  const lockOut = findLockOut(context, edits)
  if (lockOut !== null)
    return answerRefusals(context, refused, new Map([[lockOut.at, lockOut.error]]))
  const before = readShown(context, edits.map(nameOf))
  const made = await tryEdits(context, edits, check)
  if (!made.ok) {
    for (const [name, error] of made.errors) {
      // A typo is shown at its field and is no event.
      if (made.typos.has(name)) continue
      const [section, key] = name.split('.')
      const summary = `${name} was not changed: ${error}`
      await recordSettingsEvent(context, 'settings.config.failed', summary, { section, key })
    }
    const errors = [...made.errors].map(([name, error]) => [name, describeError(error)] as const)
    return answerRefusals(context, refused, new Map(errors), [...made.errors.values()][0])
  }
  for (const { name, path, line } of made.edited) {
    const [section, key] = name.split('.')
    const title = findRow(context.services.config.list(), name)?.setting.title ?? name
    const summary = `${title} (${name}) was changed in ${path}`
    const changes = compareFields(before, readShown(context, [name]))
    await recordSettingsEvent(context, 'settings.config.updated', summary, {
      section,
      key,
      path,
      line,
      changes,
    })
  }
  return null
}

function answerSaved(
  context: PageContext,
  { form, edits, page }: PostedEdits,
  word: 'config' | 'upstream' = 'config',
): Answer {
  context.site.changes.announce({ topic: 'settings' })
  const names = edits.map(nameOf)
  const rows = context.services.config.list()
  const isPending = names.some((name) => findRow(rows, name)?.isPending === true)
  const saved = isPending ? 'restart' : word
  return context.goTo(savedAddress(form, { saved, names, anchor: names[0] ?? null }, page))
}

const ALLOWED_HOSTS = 'server.allowed_hosts'
const PUBLIC_URL = 'server.public_url'

/** Allowed hosts without the one in use would lock everybody out; null: it is among them. */
function findLockOut(
  context: PageContext,
  edits: readonly ConfigEdit[],
): { readonly at: string; readonly error: string } | null {
  const textOf = (name: string) => edits.find((edit) => nameOf(edit) === name)?.text
  const [hosts, url] = [textOf(ALLOWED_HOSTS), textOf(PUBLIC_URL)]
  if (hosts === undefined && url === undefined) return null
  const present = context.services.config.current().server
  const allowed =
    hosts === undefined
      ? accept(present.allowed_hosts)
      : REACH_SETTINGS.allowed_hosts.parse(REACH_SETTINGS.allowed_hosts.fromText(hosts))
  const host = peerOf(context.event).host.replace(/\.?(?::\d+)?$/, '')
  if (!allowed.ok || isServed(host, allowed.value, url ?? present.public_url)) return null
  return hosts === undefined
    ? {
        at: PUBLIC_URL,
        error: `Add ${host} to the allowed host names first: it is the name by which you use this page.`,
      }
    : { at: ALLOWED_HOSTS, error: `Add ${host}: it is the name by which you use this page.` }
}

const isServed = (host: string, allowed: readonly string[], publicUrl: string): boolean =>
  allowed.length === 0 ||
  allowed.some((name) => name.toLowerCase().replace(/\.$/, '') === host) ||
  URL.parse(publicUrl)?.hostname === host

const nameOf = ({ section, key }: ConfigEdit): string => `${section}.${key}`

/** Errors by name; a file that cannot be used is the fault of all its settings. */
async function tryEdits(
  { services }: PageContext,
  edits: readonly ConfigEdit[],
  check?: (present: readonly ShownSetting[]) => RefusedEdits,
) {
  try {
    const made = await services.config.edit(edits, check)
    if (made.ok) return { ok: true, ...made.value } as const
    return failedFor(
      [...made.refusal].map(([name, why]) => [name, describeRefusal(why)]),
      [...made.refusal].flatMap(([name, { why }]) => (why === 'invalid' ? [name] : [])),
    )
  } catch (thrown) {
    if (!(thrown instanceof Fault)) throw thrown
    // Further lines show a part of the file, which can hold secrets.
    const [message = ''] = thrown.message.split('\n')
    return failedFor(edits.map((edit) => [nameOf(edit), message]))
  }
}

type Why = RefusedEdits extends ReadonlyMap<string, infer Each> ? Each : never

const describeRefusal = (why: Why): string =>
  why.why === 'stale'
    ? `Changed in the meantime to: ${why.present || 'the default'}. Save again to replace that.`
    : renderEditRefusal(why)

const failedFor = (
  errors: readonly (readonly [name: string, error: string])[],
  typos: readonly string[] = [],
) => ({ ok: false, errors: new Map(errors), typos: new Set(typos) }) as const

/** With everything typed but secrets: browsers keep pages. */
function answerRefusals(
  context: PageContext,
  { form, edits, page }: PostedEdits,
  errors: ReadonlyMap<string, string>,
  error = [...errors.values()][0] ?? '',
): Answer {
  const rows = context.services.config.list()
  const typed = edits.flatMap((edit) =>
    findRow(rows, nameOf(edit))?.setting.isSecret === false ? [[nameOf(edit), edit.text]] : [],
  )
  const [first] = errors.keys()
  return context.goBack(page, {
    error,
    typed: Object.fromEntries(typed),
    errors: Object.fromEntries(errors),
    query: searchOf(form),
    ...(first === undefined ? {} : { anchor: first }),
  })
}

export async function recordSettingsEvent(
  context: PageContext,
  kind: string,
  summary: string,
  details: Readonly<Record<string, unknown>>,
) {
  await context.site.recordAll([{ kind, subject_kind: 'settings', summary, details }], {
    subject_id: null,
    ...context.by(),
  })
}

/** /ui/boot-entries: what machines can be booted into once; administrators add, change and remove it. */
import { getRouterParam } from 'h3'
import type { ZodError } from 'zod'
import { explainUntrusted } from '#engine/bootable/rules/boot-facts.ts'
import {
  ANSWERS,
  BootEntrySchema,
  ENTRY_PARTS,
  EntryNameSchema,
  listParts,
  MAX_ARGUMENT_CHARACTERS,
  MAX_NOTE_CHARACTERS,
  type EntryPart,
  type NamedEntry,
} from '#fleet/once/rules/boot-entry.ts'
import type { FieldError } from '#kit/foundation/field-error.ts'
import { fillCount, upperFirst } from '#kit/foundation/text.ts'
import type { Answer } from '#kit/web/answers/answers.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import { banner, card, emptyState } from '#kit/web/ui/elements.ts'
import { areaField, hidden } from '#kit/web/ui/fields.ts'
import type { Notice } from '#kit/web/ui/form-notices.ts'
import { address, html, type Content, type Html } from '#kit/web/ui/html.ts'
import { ACTIONS, renderTable } from '#kit/web/ui/tables.ts'
import { formAt, pageAt, removalAt } from '#server/pages/context-routes.ts'
import { blank, renderCurlBlock, type CurlCall } from '#server/pages/curl-block.ts'
import {
  describeWrong,
  renderFormFields,
  type FormErrors,
  type FormField,
} from '#server/pages/form-fields.ts'
import { questionButton, showRemoval } from '#server/pages/question.ts'
import type { CurrentContext } from '../view/page-context.ts'
import { countOrdered, createEntryFinder, createEntryResource } from './once-routes.ts'
import type { KnownEntry } from '#fleet/once/rules/boot-entry.ts'

export const ENTRIES_PATH = '/ui/boot-entries'
const SAVE_PATH = `${ENTRIES_PATH}/save`
const TITLE = 'Boot entries'
const TRAIL = html`<a href="${ENTRIES_PATH}">${TITLE}</a>`

export const ENTRY_PAGES = [
  pageAt(ENTRIES_PATH, 'read', show, { reach: 'list' }),
  formAt(SAVE_PATH, 'admin', save, { reach: 'list' }),
  removalAt(`${ENTRIES_PATH}/:name/remove`, 'admin', askRemoval, remove, { reach: 'list' }),
]

async function show(context: CurrentContext): Promise<Answer> {
  const { site, event, services, query } = context
  const entries = services.entries.list()
  const mayChange = site.mayOpen(event, SAVE_PATH, 'POST')
  return await context.show({
    title: TITLE,
    learn: 'boot-once.html',
    ...(entries.length === 0 ? {} : { count: String(entries.length) }),
    messages: html`${context.message()}${renderDone(query)}`,
    body: html`<p class="hint">
        A machine can be booted once into something else, such as a memory test or an installer. Its
        image, its disk and what it does on network boot stay as they are.
      </p>
      ${entries.length === 0 ? renderEmpty(mayChange) : renderList(context, entries, mayChange)}
      ${mayChange ? renderForm(context, services.entries.find(query.get('change') ?? '')) : null}`,
  })
}

const renderEmpty = (mayChange: boolean): Html =>
  emptyState(
    'No boot entries',
    mayChange
      ? 'Copy a kernel or an EFI program into the boot folder, then add it here.'
      : 'An administrator can add them.',
  )

function renderDone(query: URLSearchParams): Content {
  const [saved, removed] = [query.get('saved'), query.get('removed')]
  const name = saved ?? removed
  if (name === null || !EntryNameSchema.safeParse(name).success) return null
  return banner('done', `The boot entry ${name} was ${saved === null ? 'removed' : 'saved'}.`)
}

const COLUMNS = ['Entry', 'For', 'Starts', 'Secure Boot', 'Ordered'] as const

function renderList(
  context: CurrentContext,
  entries: readonly NamedEntry[],
  mayChange: boolean,
): Html {
  const findEntry = createEntryFinder(context.services)
  return renderTable({
    caption: TITLE,
    columns: [...COLUMNS, ...(mayChange ? [ACTIONS] : [])],
    rows: entries.flatMap(({ name }) => {
      const known = findEntry(name)
      return known === null ? [] : [renderRow(context, known, mayChange)]
    }),
  })
}

function renderRow(context: CurrentContext, known: KnownEntry, mayChange: boolean): Html {
  const { entry, trouble } = known
  const { name, note, processor, firmware } = entry
  const count = countOrdered(context.site, name)
  return html`<tr id="${`entry-${name}`}">
    <th scope="row">
      <bdi>${name}</bdi>${note === '' ? null : html`<p class="dim small"><bdi>${note}</bdi></p>`}
    </th>
    <td data-label="For">${processor}, ${FIRMWARE_TEXTS[firmware]}</td>
    <td data-label="Starts">
      ${listParts(entry).map((file) => html`<p><code>${file.name}</code></p>`)}
      ${trouble === null ? null : html`<p class="warning small">${upperFirst(trouble)}.</p>`}
    </td>
    <td data-label="Secure Boot">${describeTrust(known)}</td>
    <td data-label="Ordered">
      ${count === 0 ? html`<span class="dim">none</span>` : fillCount(COUNT, count)}
    </td>
    ${
      mayChange
        ? html`<td>
            <div class="row">
              <a class="button" href="${address(ENTRIES_PATH, { change: name })}#form">Change</a>
              ${questionButton({ action: `${ENTRIES_PATH}/${encodeURIComponent(name)}/remove`, label: 'Remove' })}
            </div>
          </td>`
        : null
    }
  </tr>`
}

const COUNT = { one: '{count} machine', other: '{count} machines' }

export const FIRMWARE_TEXTS = { any: 'BIOS and UEFI', bios: 'BIOS', uefi: 'UEFI' } as const

/** Without a machine, whose firmware may trust more, or has no Secure Boot. */
function describeTrust({ entry, trouble, program, shimKeys }: KnownEntry): Content {
  if (entry.firmware === 'bios' || trouble !== null) return html`<span class="dim">–</span>`
  const why = explainUntrusted(program, null, shimKeys)
  if (why === null) return 'Starts by our shim'
  const isSigned = (program?.signatures.length ?? 0) > 0
  return html`<span class="small"
    >Refused where Secure Boot is
    on${isSigned ? ' and the firmware does not trust it either' : null}: ${why}.</span
  >`
}

const NAME = {
  label: 'Name',
  hint: 'Letters, digits, dots and dashes, such as memtest or debian-13.',
  wrong:
    'A name has up to 64 letters, digits, dots, dashes and underscores, and begins with a letter or a digit.',
  required: true,
  maxLength: 64,
  mono: true,
} satisfies FormField

const FILE = { maxLength: 255, mono: true } as const
const DIGEST = {
  label: 'Its SHA-256',
  maxLength: 64,
  mono: true,
  wrong: '64 hexadecimal digits, as sha256sum prints them.',
} as const
const NO_FILE = 'Not the name of a file in the boot folder.'

const FIELDS = {
  processor: {
    label: 'Processor',
    options: ['x86_64', 'arm64'].map((value) => ({ value, text: value })),
  },
  firmware: {
    label: 'Firmware',
    wrong: 'An EFI program and arm64 need UEFI.',
    options: Object.entries(FIRMWARE_TEXTS).map(([value, text]) => ({ value, text })),
  },
  kernel: { ...FILE, label: 'Kernel', hint: 'A file in the boot folder.', wrong: NO_FILE },
  kernel_sha256: DIGEST,
  initrd: { ...FILE, label: 'Initrd', hint: 'Leave empty if there is none.', wrong: NO_FILE },
  initrd_sha256: DIGEST,
  program: {
    ...FILE,
    label: 'EFI program',
    hint: 'Instead of a kernel.',
    wrong: NO_FILE,
  },
  program_sha256: DIGEST,
  arguments: {
    label: 'Arguments',
    hint: `${ANSWERS} stands for the address of the answers of the machine. It ends with a slash.`,
    wrong: 'One line without quotes, dollar signs or backslashes.',
    maxLength: MAX_ARGUMENT_CHARACTERS,
    mono: true,
  },
  note: {
    label: 'Note',
    wrong: `The note is too long: it may have ${MAX_NOTE_CHARACTERS} characters.`,
    maxLength: MAX_NOTE_CHARACTERS,
  },
} satisfies Readonly<Record<string, FormField>>

function toForm(entry: NamedEntry | null): Readonly<Record<string, string | undefined>> {
  if (entry === null) return {}
  const files = ENTRY_PARTS.flatMap((part) => [
    [part, entry[part]?.name ?? ''],
    [`${part}_sha256`, entry[part]?.sha256 ?? ''],
  ])
  const { processor, firmware, note } = entry
  return { ...Object.fromEntries(files), processor, firmware, note, arguments: entry.arguments }
}

const MAX_TYPED = 70_000

function readForm(form: URLSearchParams) {
  const get = (name: string) => (form.get(name) ?? '').slice(0, MAX_TYPED).trim()
  const fileOf = (part: EntryPart) =>
    get(part) === '' ? null : { name: get(part), sha256: get(`${part}_sha256`).toLowerCase() }
  return {
    processor: get('processor'),
    // There is no other choice.
    firmware: get('program') === '' && get('processor') !== 'arm64' ? get('firmware') : 'uefi',
    kernel: fileOf('kernel'),
    initrd: fileOf('initrd'),
    program: fileOf('program'),
    arguments: get('arguments'),
    answers: (form.get('answers') ?? '').slice(0, MAX_TYPED).replaceAll('\r\n', '\n'),
    note: get('note'),
  }
}

/** An existing entry keeps its name; the form carries what it was made from. */
function renderForm(context: CurrentContext, entry: NamedEntry | null): Html {
  const notice = context.notice()
  const { title, first, buttons } = entry === null ? renderNew(notice) : renderChange(entry)
  return card({
    title,
    id: 'form',
    body: html`<form method="post" action="${SAVE_PATH}">
        ${first} ${renderFormFields(FIELDS, toForm(entry), notice)}
        ${renderAnswersField(entry, notice)}
        <div class="row">${buttons}</div>
      </form>
      ${renderCurlBlock(context, [callSave(entry?.name ?? blank('name'))])}`,
  })
}

const renderNew = (notice: Notice | null) => ({
  title: 'New boot entry',
  first: renderFormFields({ name: NAME }, {}, notice),
  buttons: html`<button class="primary">Add boot entry</button>`,
})

const renderChange = ({ name, saved_at }: NamedEntry) => ({
  title: html`Change <bdi>${name}</bdi>`,
  first: hidden({ entry: name, before: saved_at }),
  buttons: html`<a class="button" href="${ENTRIES_PATH}">Cancel</a>
    <button class="primary">Save</button>`,
})

const renderAnswersField = (entry: NamedEntry | null, notice: Notice | null): Html =>
  areaField({
    name: 'answers',
    label: 'Kickstart or preseed file',
    value: notice?.typed['answers'] ?? entry?.answers ?? '',
    hint: ANSWERS_HINT,
    error: notice?.errors['answers'] ?? null,
    rows: 6,
  })

const callSave = (name: string): CurlCall => ({
  method: 'PUT',
  path: `/boot-entries/${name}`,
  body: { processor: 'x86_64', kernel: { name: blank('file'), sha256: blank('sha256') } },
  scope: 'admin',
})

const ANSWERS_HINT =
  'Served as ks.cfg and preseed.cfg below the address of the answers, filled in for each machine with {{name}}, {{mac}}, {{serial}}, {{label.…}} and {{secret.…}}. Beside it are the files of cloud-init and Ignition of its first-boot template. Who can fetch a machine’s boot script can read them: a template with secrets needs [pxe] tokens = require.'

async function save(context: CurrentContext, form: URLSearchParams): Promise<Answer> {
  const { services, site } = context
  const known = form.get('entry')
  const fail = (errors: FormErrors) =>
    context.goBack(ENTRIES_PATH, {
      error: Object.values(errors)[0] ?? '',
      text: 'The boot entry was not saved.',
      typed: Object.fromEntries([...form].map(([key, value]) => [key, value.slice(0, MAX_TYPED)])),
      errors,
      query: { change: known },
      anchor: 'form',
    })
  const name = known ?? (form.get('name') ?? '').trim()
  if (!EntryNameSchema.safeParse(name).success) return fail({ name: NAME.wrong })
  const read = BootEntrySchema.safeParse(readForm(form))
  if (!read.success) return fail(describeMistakes(read.error))
  const before = known === null ? null : form.get('before')
  const saved = await createEntryResource(site, services).save(
    { ...read.data, name },
    context.by(),
    (entry) => (entry?.saved_at ?? null) === before,
  )
  return saved.ok
    ? context.goTo(address(ENTRIES_PATH, { saved: name }))
    : fail(describeRefusal(saved.refusal))
}

function describeMistakes(error: ZodError): FormErrors {
  const [first] = error.issues
  const [part, field] = first?.path ?? []
  return field === 'sha256'
    ? { [`${String(part)}_sha256`]: DIGEST.wrong }
    : describeWrong(error, FIELDS, first?.message)
}

function describeRefusal(refusal: 'stays' | 'too-many' | FieldError): FormErrors {
  if (refusal === 'stays') return { name: STALE }
  if (refusal === 'too-many') return { name: 'There are too many. Remove one first.' }
  return { [String(refusal.loc[1] ?? 'kernel')]: `${upperFirst(refusal.msg)}.` }
}

const STALE = 'There is an entry of this name, or somebody else has changed it. Check it again.'

function find({ services, event }: CurrentContext): NamedEntry {
  const entry = services.entries.find(getRouterParam(event, 'name', { decode: true }) ?? '')
  if (entry === null) throw refuse(404, 'There is no such boot entry.')
  return entry
}

async function askRemoval(context: CurrentContext): Promise<Answer> {
  const { name } = find(context)
  return await showRemoval(context, {
    title: 'Remove boot entry',
    trail: TRAIL,
    question: html`Remove the boot entry <bdi>${name}</bdi>?`,
    body: html`<p>Its files stay in the boot folder.</p>`,
    cancel: ENTRIES_PATH,
    button: 'Remove boot entry',
    calls: [{ method: 'DELETE', path: `/boot-entries/${name}`, scope: 'admin' }],
  })
}

async function remove(context: CurrentContext): Promise<Answer> {
  const entry = find(context)
  const { site, services } = context
  const ordered = countOrdered(site, entry.name)
  if (ordered > 0) return context.goBack(ENTRIES_PATH, { error: fillCount(ORDERED, ordered) })
  await createEntryResource(site, services).remove(entry.name, context.by())
  return context.goTo(address(ENTRIES_PATH, { removed: entry.name }))
}

const ORDERED = {
  one: '{count} machine is set to boot it. Cancel that first.',
  other: '{count} machines are set to boot it. Cancel that first.',
}

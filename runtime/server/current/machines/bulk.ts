/** Actions on many machines at once: a preview for each, then the action, machine by machine. */
import { GENERALIZE_HINT } from '#server/current/captures/capture-card.ts'
import type { Answer } from '#kit/web/answers/answers.ts'
import { renderFieldErrors } from '#kit/foundation/field-error.ts'
import { parseMac } from '#kit/net/rules/mac.ts'
import { pluralOf } from '#kit/foundation/text.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import { LIMITS } from '#kit/web/answers/limits.ts'
import { type Content, type Html, html } from '#kit/web/ui/html.ts'
import { channelOf, type Machine, splitLabels } from './rules/machine.ts'
import {
  BULK_ACTIONS,
  titleOf,
  type BulkAction,
  askedOf,
  AT_ONCE,
  BULK_PATH,
  digestOf,
  judge,
  leaveOutWriting,
  readWhich,
  renderPreview,
  renderResult,
  type BulkDone,
  type BulkPreview,
  backOf,
  keptOf,
} from './bulk-question.ts'
import { listOptions } from '#server/current/first-boot/machine-card.ts'
import { actOnMany } from '#server/routes/many.ts'
import { formAt, pageAt } from '#server/pages/context-routes.ts'
import type { CurrentContext } from '#server/current/view/page-context.ts'
import { batchPath } from '#server/current/view/batch-view.ts'
import { isArmed, aboutImage, NO_IMAGES } from '#server/current/view/machine-view.ts'
import { renderPowerForm, POWER_FIELDS, showPowerBulk } from './power-bulk.ts'
import { renderCurlBlock } from '#server/pages/curl-block.ts'
import { callFlash } from './machine-calls.ts'
import { fingerprint, MODE_CARDS } from './machine-form.ts'
import { findMisfit, renderFlashQuestion, keywordsOf, renderChannelCards } from './image-cards.ts'
import type { NamedEntry } from '#fleet/once/rules/boot-entry.ts'
import { renderEntryField } from '#server/current/once/once-card.ts'
import { machinePath } from '#server/pages/machines/machines-list.ts'
import { NAME_FOR_EACH } from '#engine/capture/rules/order.ts'
import { isFlashable, type CatalogEntry } from '#engine/catalog/rules/catalog.ts'
import type { ImageChannel } from '#fleet/channel/rules/channel.ts'
import { parseImageChoice } from '#server/current/channels/rules/channel-order.ts'
import {
  checkField,
  hidden,
  postButton,
  radioCards,
  selectField,
  textField,
  type RadioCard,
} from '#kit/web/ui/fields.ts'
import { renderQuestion } from '#server/pages/question.ts'

/** Null: not asked for yet, or an image is still being searched. */
const readParameters = (action: BulkAction, form: URLSearchParams): object | null =>
  form.has('finding') ? null : (PARAMETERS[action] ?? (() => ({})))(form)

/** By the field that shows that parameters were asked for. */
const PARAMETERS: Partial<Readonly<Record<BulkAction, (form: URLSearchParams) => object | null>>> =
  {
    image(form) {
      const value = form.get('bty_image_ref')
      if (value === null) return null
      const { channel, ref } = parseImageChoice(value)
      return { bty_image_ref: ref || null, ...(channel === null ? {} : { channel }) }
    },
    mode(form) {
      const boot_mode = form.get('boot_mode')
      return boot_mode === null ? null : { boot_mode }
    },
    'first-boot'(form) {
      const name = form.get('first_boot')
      return name === null ? null : { first_boot: name || null }
    },
    label(form) {
      const [add, remove] = [form.get('add'), form.get('remove')]
      if (add === null) return null
      return { add: splitLabels(add), remove: splitLabels(remove ?? '') }
    },
    once(form) {
      const entry = form.get('entry')
      return entry === null ? null : { entry }
    },
    capture(form) {
      const name = form.get('capture_name')
      return name === null ? null : { name: name.trim(), generalize: form.has('generalize') }
    },
  }

const PREVIEWED: ReadonlySet<BulkAction> = new Set(['capture', 'once'])

const FIELDS_OF: Partial<Readonly<Record<BulkAction, readonly string[]>>> = {
  image: ['bty_image_ref'],
  mode: ['boot_mode'],
  'first-boot': ['first_boot'],
  label: ['add', 'remove'],
  capture: ['capture_name', 'generalize'],
}

interface BulkChoices {
  readonly images: readonly CatalogEntry[]
  readonly channels: readonly ImageChannel[]
  readonly templates: readonly { readonly value: string; readonly text: string }[]
  readonly entries: readonly NamedEntry[]
  readonly error: string | null
}

const renderParameterForm = (
  action: BulkAction,
  count: number,
  form: URLSearchParams,
  choices: BulkChoices,
): Html =>
  renderQuestion({
    title: pluralOf(
      {
        one: `${titleOf(action)}: ${count} machine`,
        other: `${titleOf(action)}: ${count} machines`,
      },
      count,
    ),
    form: {
      action: BULK_PATH,
      fields: html`${keptOf(form, FIELDS_OF[action] ?? [])}
      ${PREVIEWED.has(action) ? null : hidden({ [AT_ONCE]: '1' })}
      ${renderFields(action, form, choices)}`,
      cancel: backOf(form),
      button: html`<button class="primary">
        ${PREVIEWED.has(action) ? 'Preview' : html`${titleOf(action)} (${count})`}
      </button>`,
    },
  })

function renderFields(
  action: BulkAction,
  form: URLSearchParams,
  { images, channels, templates, entries, error }: BulkChoices,
): Html {
  if (action === 'first-boot') {
    return selectField({
      name: 'first_boot',
      label: 'Template',
      value: '',
      options: templates,
    })
  }
  if (action === 'once') return renderEntryField(entries)
  if (action === 'capture') {
    return html`${textField({
      name: 'capture_name',
      label: 'New images',
      hint: '{name} and {mac} stand for the name and the MAC address of each machine.',
      error,
      value: form.get('capture_name') ?? NAME_FOR_EACH,
      required: true,
      maxLength: 255,
    })}
    ${checkField({
      name: 'generalize',
      label: 'Remove host keys and the machine ID',
      hint: GENERALIZE_HINT,
      checked: error === null || form.has('generalize'),
    })}`
  }
  if (action === 'image') {
    const offered = images.filter(isFlashable)
    return renderPicker(form, offered, renderChannelCards({ images: offered, channels }))
  }
  if (action === 'mode') {
    return radioCards({
      name: 'boot_mode',
      legend: 'On network boot',
      value: null,
      className: 'modes',
      cards: MODE_CARDS,
    })
  }
  return html`${textField({ id: 'added', name: 'add', label: 'Add labels', hint: 'Separate with commas.' })}
  ${textField({ name: 'remove', label: 'Remove labels' })}`
}

/** The search finds further ones. */
const MAX_CARDS = 100

/** A script filters while somebody types; without one, Find does. */
function renderPicker(
  form: URLSearchParams,
  images: readonly CatalogEntry[],
  channels: readonly RadioCard[],
): Html {
  const find = (form.get('find') ?? '').slice(0, 200)
  const selected = form.get('bty_image_ref')
  const words = find.toLowerCase().split(/\s+/)
  const isFound = (keywords: string) => words.every((word) => keywords.toLowerCase().includes(word))
  const found = images.filter((image) => image.ref === selected || isFound(keywordsOf(image)))
  return radioCards({
    name: 'bty_image_ref',
    legend: 'Image',
    value: selected,
    className: 'images',
    before: html`<div class="row finder">
        <input
          type="search"
          name="find"
          value="${find}"
          data-filter=".images"
          aria-label="Find an image"
          placeholder="Find an image"
          autocomplete="off"
        />
        <button name="finding" value="1">Find</button>
      </div>
      ${images.length === 0 ? NO_IMAGES : found.length === 0 ? html`<p class="hint">No image matches.</p>` : null}
      ${
        found.length > MAX_CARDS
          ? html`<p class="hint">
              ${MAX_CARDS} of ${found.length} images. Find one by a part of its name.
            </p>`
          : null
      }`,
    cards: [
      ...channels.filter(({ keywords }) => isFound(keywords ?? '')),
      { value: '', title: 'No image', keywords: 'none no image' },
      ...found.slice(0, MAX_CARDS).map((image) => ({
        value: image.ref,
        title: image.name,
        text: html`${image.format},
        ${aboutImage(image)}${image.arch === null ? null : html`, ${image.arch}`}`,
        keywords: keywordsOf(image),
      })),
    ],
  })
}

interface BulkRequest {
  readonly action: BulkAction
  readonly parameters: object
  readonly verdicts: readonly BulkPreview[]
}

interface Executed {
  readonly batch: string | null
  readonly rows: readonly BulkDone[]
}

export const BULK_PAGES = [
  pageAt(BULK_PATH, 'machines', showDialog, { reach: 'list' }),
  formAt(BULK_PATH, 'machines', handle, { reach: 'list' }),
]

/** The dialog of an action as a page, for somebody who had to log in again. It changes nothing. */
async function showDialog(context: CurrentContext): Promise<Answer> {
  const form = new URLSearchParams(context.query)
  for (const name of ['sure', AT_ONCE, ...POWER_FIELDS]) form.delete(name)
  const action = readAction(form)
  if (PARAMETERS[action] !== undefined) form.set('finding', '1')
  const asked = await ask(context, action, await listSelected(context, form), form)
  if ('verdicts' in asked) throw refuse(404, 'no such page')
  return await context.show({ title: titleOf(action), body: asked })
}

async function handle(context: CurrentContext, form: URLSearchParams): Promise<Answer> {
  const action = readAction(form)
  const show = (body: Html) => context.show({ title: titleOf(action), body })
  const machines = await listSelected(context, form)
  if (action === 'power' && machines.length > 0)
    return await show(showPowerBulk(context, machines, form))
  const asked = await ask(context, action, machines, form)
  if (!('verdicts' in asked)) return await show(asked)
  const { batch, rows } = await execute(context, action, asked.parameters, asked.verdicts, form)
  return await show(renderResult(action, rows, form, batch, renderBatchUndo(context, batch)))
}

/** What is still to be asked, or what can be carried out. */
async function ask(
  context: CurrentContext,
  action: BulkAction,
  machines: readonly Machine[],
  form: URLSearchParams,
): Promise<Html | BulkRequest> {
  if (machines.length === 0) return renderResult(action, [], form)
  if (action === 'power') return renderPowerForm(context, machines.length, form)
  const parameters = readParameters(action, form)
  const error = parameters === null ? null : findError(context, action, parameters, machines.length)
  if (parameters === null || error !== null) {
    const choices = {
      images: context.services.images(),
      channels: context.services.channels.list(),
      templates: listOptions(context, null),
      entries: context.services.entries.list(),
      error,
    }
    return renderParameterForm(action, machines.length, form, choices)
  }
  const judged = machines.map((machine) => judge(context, machine, action, parameters))
  const fitting = await leaveOutMisfits(context, judged)
  const request = {
    action,
    parameters,
    verdicts: leaveOutWriting(judgeConflicts(context, action, fitting), form),
  }
  return (
    (await askAboutOne(context, action, request.verdicts)) ??
    (await askAboutMany(context, request, form)) ??
    request
  )
}

/** For a minute after it. */
function renderBatchUndo({ site }: CurrentContext, batch: string | null): Content {
  const count = batch === null ? 0 : site.fleet.listUndoable(batch).length
  return batch === null || count === 0
    ? null
    : postButton({ action: `${batchPath(batch)}/undo`, label: `Undo (${count})` })
}

/** Confirmed by the serial number, as on the machine's page. */
async function askAboutOne(
  context: CurrentContext,
  action: BulkAction,
  verdicts: readonly BulkPreview[],
): Promise<Html | null> {
  const [only, ...others] = verdicts
  if (action !== 'flash' || others.length > 0 || only?.arms !== true) return null
  const path = `${machinePath(only.machine.mac)}/do/flash`
  if (only.after === null) return null
  const command = renderCurlBlock(context, [callFlash(only.machine)])
  return renderFlashQuestion({
    view: only.after,
    action: path,
    values: { was: fingerprint(only.after.machine) },
    error: null,
    command,
    misfit: await findMisfit(context, only.after),
  })
}

async function askAboutMany(
  context: CurrentContext,
  { action, parameters, verdicts }: BulkRequest,
  form: URLSearchParams,
): Promise<Html | null> {
  const wanted = askedOf(verdicts, action)
  const typed = form.get('sure')
  if (wanted === null && (typed !== null || isSafeAtOnce(action, verdicts, form))) return null
  const isTyped = typed !== null && typed.trim() === wanted
  // Scripts post without the digest of a question.
  const isSame = [null, digestOf(verdicts)].includes(form.get('seen'))
  if (isTyped && isSame) return null
  const mistake = isTyped
    ? 'Something has changed since this was shown: look at it again.'
    : `Type ${wanted ?? ''} to continue.`
  const error = typed === null ? null : mistake
  const command = renderCommand(context, { action, parameters, verdicts }, form)
  const misfits = await listMisfits(context, verdicts)
  return renderPreview({ action, verdicts, form, wanted, error, command, misfits })
}

/** Where the server refuses images that would not start. */
async function leaveOutMisfits(
  { refuseArming, site }: CurrentContext,
  verdicts: readonly BulkPreview[],
): Promise<readonly BulkPreview[]> {
  const armed = verdicts.filter(({ arms }) => arms)
  site.line.expectArming?.(armed.map(({ after }) => after?.machine ?? null))
  const judged: BulkPreview[] = []
  for (const verdict of verdicts) {
    const { machine, after, arms } = verdict
    const refusal = arms && after !== null ? await refuseArming(machine, after.machine) : null
    judged.push(refusal === null ? verdict : { ...verdict, refusal, after: null, arms: false })
  }
  return judged
}

/** Of those that are armed, by the reason. */
async function listMisfits({ services }: CurrentContext, verdicts: readonly BulkPreview[]) {
  const armed = verdicts.flatMap(({ arms, after }) => (arms && after !== null ? [after] : []))
  const explain = await services.misfits.find(armed.map(({ image }) => image))
  return Map.groupBy(armed, ({ image, machine }) => explain(image, machine))
}

/** No question needed: nothing is skipped and nothing armed, which labels never do. */
const isSafeAtOnce = (
  action: BulkAction,
  verdicts: readonly BulkPreview[],
  form: URLSearchParams,
): boolean =>
  form.has(AT_ONCE) &&
  verdicts.every(
    ({ refusal, after }) =>
      refusal === null && after !== null && (action === 'label' || !isArmed(after.machine)),
  )

function renderCommand(
  context: CurrentContext,
  { action, parameters, verdicts }: BulkRequest,
  form: URLSearchParams,
): Content {
  const which = readWhich(verdicts, form)
  if (which === null) return null
  const scope = context.site.line.actions[action]?.scope ?? 'machines'
  const body = { action, ...which, parameters }
  return renderCurlBlock(context, [{ method: 'POST', path: '/machines/bulk', body, scope }])
}

function readAction(form: URLSearchParams): BulkAction {
  const name = form.get('action')
  if (name === '') throw refuse(400, 'Choose an action.')
  const action = BULK_ACTIONS.find((each) => each === name)
  if (action === undefined) throw refuse(400, 'no such action')
  return action
}

async function listSelected(
  { site }: CurrentContext,
  form: URLSearchParams,
): Promise<readonly Machine[]> {
  const all = await site.machines.list()
  if (form.get('all') === '1') {
    const query = new URLSearchParams({ q: form.get('q') ?? '', filter: form.get('filter') ?? '' })
    return site.views.match(all, query).slice(0, LIMITS.bulkMachines)
  }
  const macs = new Set<string>(
    form.getAll('macs').flatMap((text) => {
      const mac = parseMac(text)
      return mac.ok ? [mac.value] : []
    }),
  )
  return all.filter(({ mac }) => macs.has(mac))
}

/** Null: no mistake. Throws a 422 for values that no form sends. */
function findError(
  { site }: CurrentContext,
  action: BulkAction,
  parameters: object,
  count: number,
): string | null {
  const errors = site.line.actions[action]?.check(parameters, count) ?? []
  if (errors.length === 0) return null
  if (action === 'capture') return errors.map(({ msg }) => msg).join('; ')
  throw refuse(422, renderFieldErrors(errors))
}

function judgeConflicts(
  { site }: CurrentContext,
  action: BulkAction,
  verdicts: readonly BulkPreview[],
): readonly BulkPreview[] {
  const findConflict = site.line.actions[action]?.conflicts?.()
  return verdicts.map((verdict) => {
    if (verdict.refusal !== null || verdict.after === null) return verdict
    const refusal = findConflict?.(verdict.after.machine) ?? null
    return refusal === null ? verdict : { ...verdict, refusal, after: null }
  })
}

/** Actions that can arm a machine with its channel's image. */
const ARMING: ReadonlySet<BulkAction> = new Set(['flash', 'mode'])

/** Names the image that was shown: a channel that moves after the answer arms nothing. */
function nameTarget(
  { machine: { mac }, refusal, after }: BulkPreview,
  action: BulkAction,
  parameters: object,
) {
  const channel = after === null ? null : channelOf(after.machine)
  const isArming = ARMING.has(action) && after !== null && isArmed(after.machine)
  if (!isArming || channel === null) return { mac, refusal }
  const { bty_image_ref } = after.machine
  return { mac, refusal, parameters: { ...parameters, channel, bty_image_ref } }
}

/** Only what the preview allowed; the action refuses what has changed since. */
async function execute(
  { site, by, view }: CurrentContext,
  action: BulkAction,
  parameters: object,
  verdicts: readonly BulkPreview[],
  form: URLSearchParams,
): Promise<Executed> {
  const targets = verdicts.map((verdict) => nameTarget(verdict, action, parameters))
  const q = form.get('all') === '1' ? (form.get('q') ?? '') : null
  const { batch, results } = await actOnMany(site, { action, parameters, q }, targets, by())
  const rows = results.flatMap(({ result, reason }, at): BulkDone[] => {
    const verdict = verdicts[at]
    if (verdict === undefined) return []
    const { machine, arms } = verdict
    const refusal = result === 'missing' ? 'It no longer exists.' : reason
    const after = refusal === null ? site.machines.peek(machine.mac) : null
    return [
      {
        machine,
        refusal,
        now: after === null ? null : view(after),
        arms: arms && refusal === null,
      },
    ]
  })
  return { batch, rows }
}

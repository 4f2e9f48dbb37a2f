/** The page of a form with what somebody had typed into it before they had to log in again. */
import { defaultTreeAdapter as tree, parse, parseFragment, serialize } from 'parse5'
import type { DefaultTreeAdapterTypes } from 'parse5'
import { z } from 'zod'
import { banner } from './elements.ts'
import { html, type Html } from './html.ts'

export const TypedFormSchema = z.object({
  /** Milliseconds since the epoch. */
  at: z.number(),
  who: z.string(),
  /** Where the form was to be sent, a local path. */
  action: z.string(),
  /** The page that it is on, a local path; null: nobody knows. */
  page: z.string().nullable(),
  fields: z.array(z.tuple([z.string(), z.string()])),
  /** Names of secrets, which are not kept. */
  lost: z.array(z.string()),
})

export type TypedForm = z.infer<typeof TypedFormSchema>

type Element = DefaultTreeAdapterTypes.Element
type Node = DefaultTreeAdapterTypes.Node

/** What a form holds to notice that somebody else changed the same: it has to say what was seen then. */
const GUARD = /^(was|was:.*|before|digest|seen)$/
/** Where the form leads to, and what no person types. */
const ASIDE = /^(back|q|keys|confirm|sure|even|count)$/

/**
 * Writes what was typed into the page's form for it; null: the page has no such form. It is the one with
 * the same hidden fields: another would do something else, and a question would be answered already. The
 * form counts as edited, so that no live update replaces it.
 */
export function fillPage(page: string, typed: TypedForm): string | null {
  const document = parse(page)
  const elements = listElements(document)
  const forms = elements.filter(
    (node) =>
      node.tagName === 'form' &&
      attributeOf(node, 'method') === 'post' &&
      attributeOf(node, 'action') === typed.action,
  )
  const form =
    forms.find((node) => isMeant(listControls(node, elements), typed.fields)) ??
    forms.find((node) => leadsToQuestion(listControls(node, elements), typed.fields))
  const parent = form === undefined ? null : tree.getParentNode(form)
  if (form === undefined || parent === null) return null
  const controls = listControls(form, elements)
  const { left, lost } = fillControls(controls, typed)
  const hasFiles = controls.some((control) => attributeOf(control, 'type') === 'file')
  const notice = renderNotice({ left, lost: [...typed.lost, ...lost], hasFiles })
  const { childNodes } = parseFragment(String(notice))
  // At the top of the page, where a page says what became of a form.
  const [after = form] = elements.filter((node) => attributeOf(node, 'id') === 'stale')
  for (const child of childNodes.slice()) {
    tree.insertBefore(tree.getParentNode(after) ?? parent, child, after)
  }
  setAttribute(form, 'data-dirty', '')
  for (const node of [form, ...controls]) reveal(node)
  for (const node of listElements(document)) keepNewline(node)
  return serialize(document)
}

/** Also those that stand elsewhere on the page. */
function listControls(form: Element, elements: readonly Element[]): readonly Element[] {
  const id = attributeOf(form, 'id')
  const own = new Set(listElements(form))
  return elements.filter((node) => {
    const owner = attributeOf(node, 'form')
    return owner === null ? own.has(node) : owner === id
  })
}

const isMeant = (controls: readonly Element[], fields: TypedForm['fields']): boolean =>
  controls.every((control) => isSame(control, fields))

/** Whether it leads to the question that was answered: sent, it asks that again. */
const leadsToQuestion = (controls: readonly Element[], fields: TypedForm['fields']): boolean =>
  controls.some(asksFirst) &&
  controls.some(
    (control) =>
      attributeOf(control, 'type') !== 'hidden' &&
      fields.some(([name]) => name === attributeOf(control, 'name')),
  ) &&
  isMeant(
    controls.filter((control) => !asksFirst(control)),
    fields,
  )

const asksFirst = (control: Element): boolean =>
  attributeOf(control, 'name') === 'confirm' && attributeOf(control, 'value') === 'ask'

/** Whether it is no hidden field, or was sent as it stands here. */
function isSame(control: Element, fields: TypedForm['fields']): boolean {
  const name = attributeOf(control, 'name')
  if (attributeOf(control, 'type') !== 'hidden' || name === null) return true
  if (GUARD.test(name) || /^(back|q)$/.test(name)) return true
  const value = attributeOf(control, 'value') ?? ''
  return fields.some((field) => field[0] === name && field[1] === value)
}

/** Opens what encloses it. */
function reveal(element: Element): void {
  let node: Node | null = element
  while (node !== null && tree.isElementNode(node)) {
    if (node.tagName === 'details') setAttribute(node, 'open', '')
    node = tree.getParentNode(node)
  }
}

/** A browser leaves the first newline of these out, and the serializer adds none. */
function keepNewline({ tagName, childNodes: [text] }: Element): void {
  if (!/^(textarea|pre)$/.test(tagName) || text === undefined || !tree.isTextNode(text)) return
  if (text.value.startsWith('\n')) text.value = `\n${text.value}`
}

const isLeft = ([name, value]: readonly [string, string]): boolean =>
  value !== '' && !ASIDE.test(name) && !GUARD.test(name)

/** Returns the fields for which there is no control, and the names of secrets that were typed. */
function fillControls(controls: readonly Element[], { fields, lost: unkept }: TypedForm) {
  const left = fields.slice()
  /** Whether the name's next value, or this one, was typed; it is used up then. */
  const take = (name: string, wanted?: string): string | undefined => {
    const at = left.findIndex(
      ([each, value]) => each === name && (wanted === undefined || value === wanted),
    )
    return at < 0 ? undefined : left.splice(at, 1)[0]?.[1]
  }
  const lost: string[] = []
  for (const control of controls) {
    const name = attributeOf(control, 'name')
    // What was not kept, or could not be sent, stays as it is stored.
    if (name === null || unkept.includes(name) || isDisabled(control)) continue
    if (attributeOf(control, 'type') !== 'password') fillControl(control, (one) => take(name, one))
    else if (take(name)) lost.push(name)
  }
  return { left: left.filter(isLeft), lost }
}

const isDisabled = (control: Element): boolean => attributeOf(control, 'disabled') !== null

type Take = (wanted?: string) => string | undefined

function fillControl(control: Element, take: Take): void {
  if (control.tagName === 'textarea') return fillText(control, take())
  if (control.tagName === 'select') {
    return fillSelect(control, take)
  }
  if (control.tagName !== 'input') return
  const name = attributeOf(control, 'name') ?? ''
  fillInput(control, name, attributeOf(control, 'type') ?? 'text', take)
}

/** What is offered no more changes nothing: the browser would select the first option. */
function fillSelect(control: Element, take: Take): void {
  const options = listElements(control).filter(({ tagName }) => tagName === 'option')
  const chosen = options.filter(
    (option) => take(attributeOf(option, 'value') ?? textOf(option)) !== undefined,
  )
  if (chosen.length === 0) return
  for (const option of options) {
    setAttribute(option, 'selected', chosen.includes(option) ? '' : null)
  }
}

function fillInput(control: Element, name: string, type: string, take: Take): void {
  if (type === 'hidden') {
    const value = take()
    if (value !== undefined && GUARD.test(name)) setAttribute(control, 'value', value)
  } else if (/^(checkbox|radio)$/.test(type)) {
    const isTyped = take(attributeOf(control, 'value') ?? 'on') !== undefined
    setAttribute(control, 'checked', isTyped ? '' : null)
  } else if (!/^(file|submit|button)$/.test(type)) {
    const text = take()
    // The answer to a question is given again.
    if (text !== undefined && !/^(confirm|sure)$/.test(name)) setAttribute(control, 'value', text)
  }
}

function fillText(control: Element, text: string | undefined): void {
  if (text === undefined) return
  control.childNodes = []
  tree.insertText(control, text.replaceAll('\r\n', '\n'))
}

interface Notice {
  /** What has no place in the form. */
  readonly left: TypedForm['fields']
  readonly lost: readonly string[]
  readonly hasFiles: boolean
}

const renderNotice = ({ left, lost, hasFiles }: Notice): Html =>
  banner(
    'needs-you',
    html`You were logged out. What you typed is here again: check it, then send
    it.${
      hasFiles ? ' Select your files again.' : null
    }${lost.length === 0 ? null : html` Type these again: ${lost.join(', ')}.`}${renderLeft(left)}`,
  )

const renderLeft = (left: TypedForm['fields']): Html | null =>
  left.length === 0
    ? null
    : html` You typed:
        <dl>
          ${left.map(
            ([name, value]) =>
              html`<dt>${name}</dt>
                <dd><pre>${value}</pre></dd>`,
          )}
        </dl>`

/** Where the form itself cannot be shown: what was typed, to be copied. */
export const renderTyped = ({ fields, lost, page }: TypedForm): Html =>
  html`<h1>What you typed</h1>
    <p>You were logged out, and nothing was changed. Repeat it on its page.</p>
    ${lost.length === 0 ? null : html`<p>Not kept: ${lost.join(', ')}.</p>`}
    ${renderLeft(fields.filter(isLeft))}
    <p><a class="button" href="${page ?? '/ui'}">Go on</a></p>`

function listElements(node: Node): readonly Element[] {
  const children = 'childNodes' in node ? node.childNodes : []
  return children.flatMap((child) =>
    tree.isElementNode(child) ? [child, ...listElements(child)] : [],
  )
}

const attributeOf = (node: Element, name: string): string | null =>
  node.attrs.find((attribute) => attribute.name === name)?.value ?? null

function setAttribute(node: Element, name: string, value: string | null): void {
  node.attrs = node.attrs.filter((attribute) => attribute.name !== name)
  if (value !== null) node.attrs.push({ name, value })
}

const textOf = (node: Element): string =>
  node.childNodes.map((child) => (tree.isTextNode(child) ? child.value : '')).join('')

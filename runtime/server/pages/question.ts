/** Confirmation questions: a dialog over the page, or a page of its own without scripts. */
import type { Answer } from '#kit/web/answers/answers.ts'
import { hidden } from '#kit/web/ui/fields.ts'
import { renderDialog } from '#kit/web/ui/keys-page.ts'
import { attributes, html, type Content, type Html } from '#kit/web/ui/html.ts'
import { renderCurlBlock, type CurlCall } from './curl-block.ts'
import type { PageContext } from './page-context.ts'

export const opensQuestion = (action: string): Html =>
  attributes({
    method: 'post',
    action,
    'hx-post': action,
    'hx-target': '#dialog',
    'hx-select': '#question',
    'hx-swap': 'innerHTML',
  })

interface QuestionButton {
  readonly action: string
  readonly label: Content
  readonly tone?: 'primary' | 'danger' | 'plain'
}

export const questionButton = ({ action, label, tone = 'plain' }: QuestionButton): Html =>
  html`<form class="inline" ${opensQuestion(action)}>
    ${hidden({ confirm: 'ask' })}<button class="${tone}">${label}</button>
  </form>`

/** Scripts post without `confirm` and are not asked. */
export const isAsked = (form: URLSearchParams): boolean =>
  form.has('confirm') && form.get('confirm') !== 'yes'

interface Removal {
  readonly title: string
  readonly trail: Content
  /** Unless given, the title. */
  readonly question?: Content
  readonly body: Content
  readonly cancel: string
  readonly button: Content
  readonly fields?: Content
  readonly calls?: readonly CurlCall[]
}

/** The page of the question; its form posts `confirm=yes` to where the page was asked for. */
export const showRemoval = (
  context: PageContext,
  { question, body, cancel, button, fields, calls = [], ...page }: Removal,
): Promise<Answer> =>
  context.show({
    ...page,
    body: renderQuestion({
      title: question ?? page.title,
      body,
      command: renderCurlBlock(context, calls),
      form: {
        action: context.event.url.pathname,
        fields: html`${fields}${hidden({ confirm: 'yes' })}`,
        cancel,
        button: html`<button class="danger">${button}</button>`,
      },
    }),
  })

interface PageQuestion {
  readonly title: Content
  readonly body?: Content
  readonly command?: Content
  readonly form: {
    readonly action: string
    readonly fields: Content
    readonly cancel: string
    readonly button: Content
  }
}

/** Its answer, another question or an error, stays in the dialog. */
export function renderQuestion({ title, body, form, command }: PageQuestion): Html {
  const { action, fields, cancel, button } = form
  return renderAnswer(
    title,
    html`${body} ${command}
      <form ${opensQuestion(action)}>
        ${fields}
        <div class="row"><a class="button" href="${cancel}" data-close>Cancel</a>${button}</div>
      </form>`,
  )
}

export const renderAnswer = renderDialog

/** The preview beside the form of a first-boot template: what a machine would get, with dots for secrets. */
import { exampleOf } from '#engine/first-boot/rules/example-subject.ts'
import { renderFirstBoot, type FirstBoot } from '#engine/first-boot/rules/seed.ts'
import type { Template } from '#engine/first-boot/rules/template.ts'
import type { Result } from '#kit/foundation/result.ts'
import { fill } from '#kit/texts/text.ts'
import { card, copyBlock } from '#kit/web/ui/elements.ts'
import { attributes, html, type Content, type Html } from '#kit/web/ui/html.ts'
import { PAGES } from '#server/texts/texts.ts'
import type { FieldTexts } from './template-form.ts'

const t = PAGES.firstBoot.preview

/** Its fields are previewed while somebody types; without scripts, by its button. */
export const FORM_ID = 'template-form'

/** `path`: of the form's post. */
export const renderPreviewCard = (path: string, drafted: Result<Template, FieldTexts>): Html =>
  card({
    title: t.title,
    id: 'preview',
    body: html`<p class="hint">${t.text}</p>
      <div
        ${attributes({
          'hx-post': path,
          'hx-include': `#${FORM_ID}`,
          'hx-vals': JSON.stringify({ do: 'preview' }),
          'hx-trigger': ['input', 'delay:400ms', `from:#${FORM_ID}`].join(' '),
          'hx-select': '#preview-texts',
          'hx-swap': 'innerHTML',
        })}
      >
        ${renderPreviewTexts(drafted)}
      </div>`,
  })

export const renderPreviewTexts = (drafted: Result<Template, FieldTexts>): Html =>
  html`<div id="preview-texts" class="stack">
    ${drafted.ok ? renderTemplate(drafted.value) : renderErrors(Object.values(drafted.refusal))}
  </div>`

const renderErrors = (errors: readonly string[]): Html =>
  html`<p>${t.incomplete}</p>
    <ul>
      ${errors.map((error) => html`<li>${error}</li>`)}
    </ul>`

function renderTemplate(template: Template): Html {
  const subject = exampleOf(template)
  const rendered = renderFirstBoot(template, subject, { instance: 'flasher-…', secrets: 'hidden' })
  return rendered.ok
    ? renderFirstBootTexts(rendered.value)
    : html`<p>${fill(t.refused, { reason: rendered.refusal })}</p>`
}

export const renderFirstBootTexts = ({ cloudInit, ignition, reason }: FirstBoot): Html =>
  html`${
    cloudInit === null
      ? null
      : Object.entries(cloudInit).map(([name, text]) =>
          text === null || text === undefined ? null : renderText(name, text),
        )
  }
  ${ignition === null ? html`<p class="hint">${fill(t.noIgnition, { reason: reason ?? '' })}</p>` : renderText('config.ign', ignition)}`

const renderText = (name: string, text: string): Content =>
  html`<p class="mono small">${name}</p>
    ${copyBlock(text, name)}`

/** A machine that does not exist, for the preview of a template that nobody has yet. */
import { parseMac } from '#kit/net/rules/mac.ts'
import { listLabels } from './placeholder.ts'
import type { TemplateSubject } from './seed.ts'
import { listTexts, type Template } from './template.ts'

/** RFC 7042: no card is given this address. */
const MAC = parseMac('00:00:5e:00:53:01')

export function exampleOf(template: Template): TemplateSubject {
  if (!MAC.ok) throw new Error('the address of the example is one')
  const labels = listTexts(template).flatMap(({ text }) => listLabels(text))
  return {
    name: 'example',
    mac: MAC.value,
    serial: 'SERIAL1',
    labels: [...new Set(labels)].map((label) => `${label}-1`),
  }
}

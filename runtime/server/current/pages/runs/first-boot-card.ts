/** The card of a run that says whether the system that it wrote has booted. */
import type { Proof } from '#engine/inventory/rules/run.ts'
import { card, factList } from '#kit/web/ui/elements.ts'
import { fillHtml, html, type Content } from '#kit/web/ui/html.ts'
import { renderSpan, renderTime, type Clock } from '#kit/web/ui/times.ts'
import { PAGES } from '#server/texts/texts.ts'

const t = PAGES.runs.run.proof

/** Nothing where nobody waits for the first boot. */
export function renderProof(proof: Proof | null, clock: Clock): Content {
  if (proof === null) return null
  const { state, until, how, seconds, contacts, call_made_at: call, reason } = proof
  return card({
    title: t.title,
    id: 'first-boot',
    body: html`<p>${fillHtml(t.sentences[state], { until: renderTime(until, clock) })}</p>
      ${factList([
        [t.how, how === null ? null : t.hows[how]],
        [t.after, seconds === null ? null : renderSpan(seconds)],
        [t.contacts, contacts === 0 ? null : contacts],
        [t.call, call === null ? t.noCall : t.hasCall],
        [t.seen, reason],
      ])}`,
  })
}

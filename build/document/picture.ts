/** Pictures as paper shows them. */

const HIDDEN = '<g visibility="hidden">'

/**
 * Renders the last picture of a drawing that plays frames one after the other; any other drawing
 * stays as it is.
 */
export function renderStill(svg: string): string {
  const last = svg.lastIndexOf(HIDDEN)
  return last < 0 ? svg : `${svg.slice(0, last)}<g>${svg.slice(last + HIDDEN.length)}`
}

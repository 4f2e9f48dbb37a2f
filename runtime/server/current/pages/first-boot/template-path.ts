/** The addresses of the pages of first-boot templates. */

export const TEMPLATES_PATH = '/ui/first-boot'

export const templatePath = (name: string): string =>
  `${TEMPLATES_PATH}/${encodeURIComponent(name)}`

/** The file that lies on the images partition, for whoever opens the stick on another machine. */

/** Lines end as Windows likes them; everybody else reads them as well. */
export const renderReadme = (version: string): string =>
  [
    `Flasher ${version}`,
    '',
    'Copy disk images here: .img, .raw, .iso, .qcow2, also compressed (.zst .xz .gz .bz2).',
    'Start a machine from this stick and they are offered, beside those of a catalog.',
    'A file catalog.toml here is the catalog that is offered first.',
    '',
    'This partition grows to the end of the stick when a machine is first started from it:',
    'until then there is room for 22 MiB. Files that are here already stay as they are.',
    '',
  ].join('\r\n')

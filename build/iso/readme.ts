/** The file that lies on the images partition, for whoever opens the stick on another machine. */

/** Lines end as Windows likes them; everybody else reads them as well. */
export const renderReadme = (version: string): string =>
  [
    `Flasher ${version}`,
    '',
    'Copy disk images here: .img, .img.zst, .img.xz, .img.gz, .img.bz2, .qcow2.',
    'Start a machine from this stick, and they are offered.',
    '',
    'This partition grows to the end of the stick when a machine is first started from it:',
    'until then there is room for 22 MB. Files that are here already stay as they are.',
    '',
  ].join('\r\n')

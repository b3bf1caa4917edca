// An explorer inside a page takes the page's theme, which the theme's button writes on the body.
document.addEventListener("DOMContentLoaded", () => {
  for (const frame of document.querySelectorAll("iframe.explorer")) {
    const plain = frame.src;
    const address = () => `${plain}#theme=${document.body.dataset.theme}`;
    const tell = () => frame.contentWindow.location.replace(address()); // no step of the history, unlike src
    frame.src = address();
    new MutationObserver(tell).observe(document.body, { attributeFilter: ["data-theme"] });
  }
});

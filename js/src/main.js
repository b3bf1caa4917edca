// One module for both hosts: a notebook imports it and calls render; a page starts by itself.
import { boot } from "./page.js";
import { render } from "./widget.js";

if (document.documentElement.dataset.mercat === "page") boot();

export default { render };

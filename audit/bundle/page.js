// Filters the entries of conversations, and opens all. Without it, the page has everything.
(function () {
  "use strict";
  var box = document.getElementById("filter");
  if (!box) return;
  box.hidden = false;
  var words = box.querySelector("input"), kind = box.querySelector("select");
  var said = box.querySelector("output");
  var button = box.querySelector("button"), folds = document.querySelectorAll("details");
  var conversations = document.querySelectorAll(".conversation");
  var items = Array.prototype.slice.call(document.querySelectorAll(".timeline > li"));
  function show() {
    var wanted = words.value.trim().toLowerCase(), shown = 0;
    items.forEach(function (item) {
      var fits = (!kind.value || item.dataset.kind === kind.value) &&
        (!wanted || item.textContent.toLowerCase().indexOf(wanted) >= 0);
      item.hidden = !fits;
      shown += fits ? 1 : 0;
    });
    var all = !wanted && !kind.value;
    conversations.forEach(function (each) {
      var fits = each.querySelector(".timeline > li:not([hidden])");
      each.hidden = !all && !fits;
      if (!all && fits) each.open = true;
    });
    said.textContent = shown + " of " + items.length;
  }
  words.addEventListener("input", show);
  kind.addEventListener("change", show);
  button.addEventListener("click", function () {
    var opens = button.textContent === "Open all";
    folds.forEach(function (each) { each.open = opens; });
    button.textContent = opens ? "Close all" : "Open all";
  });
  show();
})();
